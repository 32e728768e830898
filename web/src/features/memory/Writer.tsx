import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { useWorkflowName } from "@/components/useWorkflowName";
import type { Writer as By } from "./memory";

/** Who wrote a value, in a word: the workflow or the person; nothing where nobody knows. */
export function WriterName({ by }: { by: By | null }) {
  const nameOf = useWorkflowName();
  const name = by?.workflow ? nameOf(by.workflow) : by?.person;
  return name ? <bdi className="max-w-40 truncate text-ink-soft">{name}</bdi> : null;
}

/** Who wrote a value: the step of an execution, which can be looked at, or a person and how they came in. */
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
