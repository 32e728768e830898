/** A table with the usage of each row, and links to the executions behind it. */
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Listing } from "@/components/Listing";
import { useWorkflowName } from "@/components/useWorkflowName";
import { type Dimension, formatMeasure, type Measure, measureOf, nameOf, type Row } from "./usage";

export function UsageTable(props: {
  by: Dimension;
  show: Measure;
  rows: readonly Row[];
  /** Filter by a row: `dimension:name`. */
  onNarrow: (of: string) => void;
}) {
  const { t, i18n } = useTranslation();
  const total = props.rows.reduce((sum, row) => sum + measureOf(row, props.show), 0);
  const ordered = [...props.rows].sort((a, b) =>
    props.by === "day"
      ? nameOf(b, "day").localeCompare(nameOf(a, "day"))
      : measureOf(b, props.show) - measureOf(a, props.show),
  );
  const format = (row: Row, measure: Measure) => formatMeasure(measureOf(row, measure), measure, i18n.language);
  return (
    <Listing
      name={t("usage.title")}
      entries={ordered}
      keyOf={(row) => nameOf(row, props.by)}
      columns={[
        {
          name: t(`usage.dimension.${props.by}`),
          cell: (row) => <Name row={row} by={props.by} onNarrow={props.onNarrow} />,
        },
        {
          name: t("usage.share"),
          isNumber: true,
          cell: (row) =>
            total > 0
              ? new Intl.NumberFormat(i18n.language, { style: "percent" }).format(measureOf(row, props.show) / total)
              : null,
        },
        {
          name: t("usage.cost"),
          isNumber: true,
          cell: (row) => (row.costUsd === null ? <span className="text-ink-faint">–</span> : format(row, "costUsd")),
        },
        {
          name: t("usage.tokens"),
          isNumber: true,
          cell: (row) => (
            <span title={`${row.inputTokens} ${t("usage.input")}, ${row.outputTokens} ${t("usage.output")}`}>
              {format(row, "tokens")}
            </span>
          ),
        },
        { name: t("usage.calls"), isNumber: true, cell: (row) => format(row, "modelCalls") },
        { name: t("usage.steps"), isNumber: true, cell: (row) => format(row, "steps") },
        {
          name: t("usage.failures"),
          isNumber: true,
          cell: (row) => (row.failures ? <span className="text-failed">{row.failures}</span> : 0),
        },
        { name: t("usage.time"), isNumber: true, cell: (row) => format(row, "seconds") },
      ]}
    />
  );
}

/** The name of a row, as a link to its executions. */
function Name(props: { row: Row; by: Dimension; onNarrow: (of: string) => void }) {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const { by } = props;
  const name = nameOf(props.row, by);
  if (by === "execution")
    return (
      <Link to="/executions/$id" params={{ id: name }} className="font-mono hover:underline">
        {name}
      </Link>
    );
  if (by === "workflow")
    return (
      <Link
        to="/executions"
        search={{ workflow: name }}
        title={name}
        className="hover:underline"
        aria-label={t("usage.executions", { name: workflowName(name) })}
      >
        <bdi>{workflowName(name)}</bdi>
      </Link>
    );
  return (
    <button
      type="button"
      className={`min-h-6 text-left hover:underline ${name ? (by === "day" ? "tabular-nums" : "font-mono") : "text-ink-faint"}`}
      aria-label={t("usage.executions", { name: name || t("usage.noName") })}
      onClick={() => props.onNarrow(`${by}:${name}`)}
    >
      <bdi>{name || t("usage.noName")}</bdi>
    </button>
  );
}
