/** Requests that run or estimate the unsaved workflow. */
import { apiRequest } from "@/api/http";
import type { Json, Schemas } from "@/api/views";
import type { Operation } from "@/features/editor/document/operations";

export type DryRun = Schemas["DryRunView"];

export interface Trial {
  input: Json;
  operations: Operation[];
  /** The edited text, to which the server applies the operations. */
  document?: string;
  pinned?: Record<string, Json>;
  until?: string[];
  breakpoints?: string[];
}

const path = (workflow: string) => `/api/workflows/${encodeURIComponent(workflow)}/try`;

export const startTrial = (workflow: string, trial: Trial) =>
  apiRequest<{ executionId: string }>(path(workflow), { body: trial });

export const estimateTrial = (workflow: string, trial: Pick<Trial, "input" | "operations" | "document" | "pinned">) =>
  apiRequest<DryRun>(path(workflow), { body: { ...trial, dryRun: true } });
