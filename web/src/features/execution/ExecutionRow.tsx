/** One execution in the list, with the columns that the user shows. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { execution } from "@/api/queries";
import { ENDED, type Execution, type ExecutionEntry } from "@/api/views";
import { now } from "@/clock";
import { money } from "@/components/amounts";
import { RelativeTime } from "@/components/RelativeTime";
import { ScriptedBadge } from "@/components/Scripted";
import { SelectionCheckbox } from "@/components/SelectionBar";
import { Status } from "@/components/Status";
import { span } from "@/components/times";
import type { Selection } from "@/components/useSelection";
import { brief } from "@/values/changes";
import { type ColumnName, DETAIL_COLUMNS } from "./listColumns";
import { PARTIAL_RUN_PREFIX } from "./partialRuns";

const INPUT_CHARS = 80;
/** More columns take the place of the id. */
const COLUMNS_BESIDE_ID = 3;

export function ExecutionRow(props: {
  entry: ExecutionEntry;
  selection: Selection;
  columns: readonly ColumnName[];
  workflowName: (id: string) => string;
}) {
  const { t } = useTranslation();
  const { entry, selection, columns } = props;
  const id = entry.executionId;
  const needsDetails = columns.some((one) => DETAIL_COLUMNS.has(one));
  const details = useQuery({ ...execution(id), enabled: needsDetails, staleTime: 30_000 }).data;
  return (
    <li className={`flex items-center pl-4 hover:bg-sunken ${selection.has(id) ? "bg-accent-soft" : ""}`}>
      <SelectionCheckbox selection={selection} id={id} label={t("selection.choose", { name: id })} />
      <Link
        to="/executions/$id"
        params={{ id }}
        className="flex min-w-0 flex-1 flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 max-sm:pl-2"
      >
        <span className="shrink-0 sm:w-32">
          <Status status={entry.status} />
        </span>
        <span className="min-w-44 flex-1 font-medium wrap-anywhere max-sm:order-first max-sm:basis-full">
          <bdi title={entry.workflowId}>{props.workflowName(entry.workflowId)}</bdi>
          {entry.scripted ? (
            <span className="ml-2 font-normal">
              <ScriptedBadge scripted />
            </span>
          ) : null}
          {entry.parent ? <span className="ml-2 font-normal text-ink-faint">{t("executions.part")}</span> : null}
          {id.startsWith(PARTIAL_RUN_PREFIX) ? (
            <span className="ml-2 font-normal text-ink-faint">{t("executions.trial")}</span>
          ) : null}
        </span>
        {columns.length > COLUMNS_BESIDE_ID ? null : (
          <span className="max-w-64 truncate font-mono text-xs text-ink-faint max-sm:hidden">{id}</span>
        )}
        <span className="ml-auto text-right text-ink-soft sm:w-28">
          <RelativeTime at={entry.startedAt} />
        </span>
        {columns.map((one) => (
          <Cell key={one} column={one}>
            {cellOf(one, entry, details)}
          </Cell>
        ))}
      </Link>
    </li>
  );
}

const WIDTHS: Readonly<Record<ColumnName, string>> = {
  by: "w-24",
  input: "w-52",
  now: "w-52",
  duration: "w-20 text-right",
  steps: "w-16 text-right",
  cost: "w-20 text-right",
};

/** The name of the column precedes the value for screen readers, and is shown on hover. */
function Cell({ column, children }: { column: ColumnName; children: ReactNode }) {
  const { t } = useTranslation();
  const name = t(`executions.column.${column}`);
  return (
    <span
      title={typeof children === "string" ? `${name}: ${children}` : name}
      className={`truncate text-sm text-ink-soft tabular-nums max-sm:hidden ${WIDTHS[column]}`}
    >
      <span className="sr-only">{name}: </span>
      {children}
    </span>
  );
}

function cellOf(column: ColumnName, entry: ExecutionEntry, details: Execution | undefined): ReactNode {
  switch (column) {
    case "by":
      return entry.startedBy ?? "–";
    case "duration":
      return span((ENDED.has(entry.status) ? entry.updatedAt : now()) - entry.startedAt);
    case "input":
      return details ? brief(details.input, INPUT_CHARS) : "";
    case "now":
      return details ? (details.errors.at(-1)?.message ?? details.currentNodes.join(", ")) : "";
    case "steps":
      return details ? String(details.steps) : "";
    case "cost":
      return details?.usage.costUsd ? money(details.usage.costUsd) : details ? "–" : "";
  }
}
