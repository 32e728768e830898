import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useWorkflowName } from "@/components/useWorkflowName";
import type { Writer as By } from "./memory";

/** The author of a value: the name of a workflow or person; nothing if unknown. */
export function WriterName({ by }: { by: By | null }) {
  const nameOf = useWorkflowName();
  const name = by?.workflow ? nameOf(by.workflow) : by?.person;
  return name ? <bdi className="max-w-40 truncate text-ink-soft">{name}</bdi> : null;
}

/** The author of a value: a step with a link to its execution, or a person and how they logged in. */
export function Writer({ by }: { by: By | null }) {
  const { t } = useTranslation();
  const nameOf = useWorkflowName();
  if (by?.execution)
    return (
      <>
        <Link to="/executions/$id" params={{ id: by.execution }} className="text-accent underline">
          <bdi>{by.workflow ? nameOf(by.workflow) : by.execution}</bdi>
        </Link>
        {by.node ? (
          <>
            {" · "}
            <bdi>{by.node}</bdi>
          </>
        ) : null}
        {by.tool ? <span className="font-mono text-xs"> · {by.tool}</span> : null}
      </>
    );
  if (by?.person)
    return (
      <>
        <bdi>{by.person}</bdi>
        {by.entrance ? ` (${t(`memory.entrances.${by.entrance}`, by.entrance)})` : null}
      </>
    );
  return <span className="text-ink-faint">{t("memory.unknownWriter")}</span>;
}
