import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { execution } from "@/api/queries";
import { RelativeTime } from "./RelativeTime";
import { useWorkflowName } from "./useWorkflowName";

/** A link to an execution, labelled with its workflow and start time; the id is the tooltip. If the caller may not read
 * the execution, the id is the label. */
export function ExecutionLink({ id }: { id: string }) {
  const workflowName = useWorkflowName();
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
          <bdi>{workflowName(known.workflowId)}</bdi>, <RelativeTime at={known.startedAt} title={id} />
        </>
      ) : (
        id
      )}
    </Link>
  );
}
