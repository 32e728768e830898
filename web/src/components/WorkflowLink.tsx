import { Link } from "@tanstack/react-router";
import { useWorkflowName } from "./useWorkflowName";

/** To a workflow, by its name; its id, with the revision where one is meant, to who points at it. */
export function WorkflowLink({ id, className }: { id: string; className: string }) {
  const called = useWorkflowName();
  const [plain = id, revision] = id.split("@");
  return (
    <Link to="/workflows/$id" params={{ id: plain }} title={id} className={`wrap-anywhere ${className}`}>
      <bdi>{called(plain)}</bdi>
      {revision ? ` @${revision}` : null}
    </Link>
  );
}
