import { useCallback } from "react";
import { useWorkflowName } from "@/components/useWorkflowName";
import type { Schedule } from "./schedules";

/** A trigger in a document is named after its workflow; a schedule that a user created has an id. */
export function useScheduleName(): (one: Schedule) => string {
  const workflowName = useWorkflowName();
  return useCallback(
    (one) => (one.trigger === null ? one.id : `${workflowName(one.workflowId)} / ${one.trigger}`),
    [workflowName],
  );
}
