import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { execution } from "@/api/queries";
import { useWorkflowName } from "./useWorkflowName";
import { When } from "./When";

/** To another execution, by what it executes and when it began; its id to who points at it, or where that is all one may know. */
export function ExecutionLink({ id }: { id: string }) {
  const called = useWorkflowName();
  const known = useQuery({ ...execution(id), retry: false, staleTime: 30_000 }).data;
  return (
    <Link
      to="/executions/$id"
      params={{ id }}
      title={id}
      className={`text-accent underline ${known ? "" : "font-mono"}`}
    >
      {known ? (
        <>
          <bdi>{called(known.workflowId)}</bdi>, <When at={known.startedAt} told={id} />
        </>
      ) : (
        id
      )}
    </Link>
  );
}
