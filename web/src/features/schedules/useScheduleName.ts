import { useCallback } from "react";
import { useWorkflowName } from "@/components/useWorkflowName";
import type { Schedule } from "./schedules";

/** A schedule that stands in a document has its name from there; one that a person made has the one they gave it. */
export function useScheduleName(): (one: Schedule) => string {
  const called = useWorkflowName();
  return useCallback((one) => (one.trigger === null ? one.id : `${called(one.workflowId)} / ${one.trigger}`), [called]);
}
