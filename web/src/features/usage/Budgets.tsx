/** The budgets of workflows: limit per execution, the setting it comes from, and the highest usage. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Chip } from "@/components/Chip";
import { PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { Meter } from "@/components/Meter";
import { QueryResult } from "@/components/QueryResult";
import { EmptyMessage } from "@/components/StatusMessage";
import { useWorkflowName } from "@/components/useWorkflowName";
import { type BudgetRow, budgets, formatMeasure, type Period, partOf } from "./usage";

export function Budgets({ period }: { period: Period }) {
  const { t } = useTranslation();
  const known = useQuery(budgets(period));
  return (
    <PageSection title={t("usage.budgets.title")} about={t("usage.budgets.about")}>
      <QueryResult query={known}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyMessage title={t("usage.budgets.none")}>{t("usage.budgets.noneHint")}</EmptyMessage>
          ) : (
            <Table rows={rows} />
          )
        }
      </QueryResult>
    </PageSection>
  );
}

function Table({ rows }: { rows: readonly BudgetRow[] }) {
  const { t, i18n } = useTranslation();
  const workflowName = useWorkflowName();
  return (
    <Listing
      name={t("usage.budgets.title")}
      entries={rows}
      keyOf={(row) => `${row.workflow} ${row.measure}`}
      columns={[
        {
          name: t("usage.dimension.workflow"),
          cell: (row) => (
            <Link to="/workflows/$id" params={{ id: row.workflow }} title={row.workflow} className="hover:underline">
              <bdi>{workflowName(row.workflow)}</bdi>
            </Link>
          ),
        },
        { name: t("usage.budgets.of"), cell: (row) => t(`usage.budgets.measure.${row.measure}`) },
        {
          name: t("usage.budgets.most"),
          cell: (row) => (
            <span className="tabular-nums">
              {formatMeasure(row.most, row.measure, i18n.language)}
              <span className="block text-xs text-ink-faint">
                {t(`usage.budgets.setBy.${row.setBy}`)} · {t(`usage.budgets.policy.${row.policy}`)}
              </span>
            </span>
          ),
        },
        { name: t("usage.budgets.dearest"), cell: (row) => <HighestUsage row={row} /> },
        { name: t("usage.budgets.executions"), isNumber: true, cell: (row) => row.executions },
        { name: t("usage.budgets.state"), cell: (row) => <State row={row} /> },
      ]}
    />
  );
}

/** The execution with the highest usage, and what remained of its budget. */
function HighestUsage({ row }: { row: BudgetRow }) {
  const { t, i18n } = useTranslation();
  if (row.dearest === null) return <span className="text-ink-faint">{t("usage.budgets.unspent")}</span>;
  const say = (value: number) => formatMeasure(value, row.measure, i18n.language);
  return (
    <Link to="/executions/$id" params={{ id: row.dearest }} className="block min-w-36 hover:underline">
      <span className="text-sm tabular-nums">
        {t("usage.budgets.spent", { spent: say(row.highest), left: say(row.left) })}
      </span>
      <Meter part={partOf(row)} warnAt={row.warnAt} />
    </Link>
  );
}

/** Whether executions came near to a budget or exceeded it, and what to do. */
function State({ row }: { row: BudgetRow }) {
  const { t } = useTranslation();
  if (row.over === 0 && row.near === 0) return <Chip look="good">{t("usage.budgets.fine")}</Chip>;
  return (
    <span>
      <Chip look={row.over > 0 ? "bad" : "careful"}>
        {row.over > 0 ? t("usage.budgets.over", { count: row.over }) : t("usage.budgets.near", { count: row.near })}
      </Chip>
      <span className="block max-w-64 text-xs text-ink-soft">{t(`usage.budgets.hint.${row.setBy}`)}</span>
    </span>
  );
}
