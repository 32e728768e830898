import { Link } from "@tanstack/react-router";
import { useWorkflowName } from "./useWorkflowName";

/** A link to a workflow, labelled with its name; the tooltip is the id, with the revision if there is one. */
export function WorkflowLink({ id, className }: { id: string; className: string }) {
  const workflowName = useWorkflowName();
  const [plain = id, revision] = id.split("@");
  return (
    <Link to="/workflows/$id" params={{ id: plain }} title={id} className={`wrap-anywhere ${className}`}>
      <bdi>{workflowName(plain)}</bdi>
      {revision ? ` @${revision}` : null}
    </Link>
  );
}
