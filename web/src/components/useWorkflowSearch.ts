import type { WorkflowEntry } from "@/api/views";
import { type ServerSearch, useServerSearch } from "./useServerSearch";

/** Search workflows by id, name, description or tag. */
export const useWorkflowSearch = (its: { disabled: boolean }): ServerSearch<WorkflowEntry> =>
  useServerSearch("workflows", its.disabled ? { disabled: "true" } : {});
