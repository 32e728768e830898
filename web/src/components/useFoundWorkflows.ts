import type { WorkflowEntry } from "@/api/views";
import { type Found, useFound } from "./useFound";

/** Workflows by words in their ids, names, descriptions or tags. */
export const useFoundWorkflows = (its: { disabled: boolean }): Found<WorkflowEntry> =>
  useFound("workflows", its.disabled ? { disabled: "true" } : {});
