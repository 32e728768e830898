/** Asking the server to try what is on the screen. */
import { apiRequest } from "@/api/http";
import type { Json, Schemas } from "@/api/views";
import type { Operation } from "@/features/editor/document/operations";

export type Estimated = Schemas["DryRunView"];

export interface Trial {
  input: Json;
  operations: Operation[];
  /** The text that was typed: the operations are on top of it. */
  document?: string;
  pinned?: Record<string, Json>;
  until?: string[];
  breakpoints?: string[];
}

const path = (workflow: string) => `/api/workflows/${encodeURIComponent(workflow)}/try`;

export const begin = (workflow: string, trial: Trial) =>
  apiRequest<{ executionId: string }>(path(workflow), { body: trial });

export const estimate = (workflow: string, trial: Pick<Trial, "input" | "operations" | "document" | "pinned">) =>
  apiRequest<Estimated>(path(workflow), { body: { ...trial, dryRun: true } });
