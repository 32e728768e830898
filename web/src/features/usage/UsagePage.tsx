import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Download, X } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { useNow } from "@/clock";
import { BOX } from "@/components/LabelledField";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { EmptyMessage } from "@/components/StatusMessage";
import { Budgets } from "./Budgets";
import { Choice } from "./Choice";
import { DayChart } from "./DayChart";
import { UsageTable } from "./UsageTable";
import {
  byDay,
  csvAddress,
  DIMENSIONS,
  type Dimension,
  formatMeasure,
  lastDays,
  MEASURES,
  type Measure,
  measureOf,
  type Period,
  RANGES,
  type Range,
  type Row,
  usage,
} from "./usage";

/** The filters as they stand in the address, so that a user can share the link. */
export interface UsageSearch {
  by?: Dimension;
  show?: Measure;
  range?: Range;
  since?: string;
  until?: string;
  /** Filters as `dimension:name`. */
  of?: string[];
}

/** The usage of executions: a chart by day, and a table by any dimension. */
export function UsagePage() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const search = useSearch({ from: "/usage" });
  const { by = "workflow", range = "30" } = search;
  const at = useNow();
  const period =
    range === "own" ? { since: search.since ?? "", until: search.until ?? "" } : lastDays(range, at * 1000);
  const counted = search.of ? { ...period, of: search.of } : period;
  const days = useQuery(usage("day", counted));
  const rows = useQuery(usage(by, counted));
  // If no price is known, tokens are the more useful measure.
  const show = search.show ?? (days.data?.usage.some((row) => row.costUsd) ? "costUsd" : "tokens");
  const look = (change: UsageSearch) => void navigate({ to: "/usage", search: { ...search, ...change } });
  return (
    <Page
      title={t("usage.title")}
      about={t("usage.about")}
      actions={
        <a
          href={csvAddress(by, counted)}
          download={`usage-${by}.csv`}
          className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-3 font-medium hover:bg-sunken"
        >
          <Download className="size-4" aria-hidden /> {t("usage.csv")}
        </a>
      }
    >
      <div className="mb-4 flex flex-wrap items-end gap-x-6 gap-y-3">
        <Choice
          name={t("usage.range")}
          value={range}
          choices={RANGES.map((one) => [one, t(`usage.ranges.${one}`)])}
          onChoose={(one) => look(one === "own" ? { range: one, ...period } : { range: one })}
        />
        {range === "own" ? <CustomPeriod period={period} onChange={look} /> : null}
        <Choice
          name={t("usage.measure")}
          value={show}
          choices={MEASURES.map((one) => [one, t(`usage.measures.${one}`)])}
          onChoose={(one) => look({ show: one })}
        />
        <Choice
          name={t("usage.by")}
          value={by}
          choices={DIMENSIONS.map((one) => [one, t(`usage.dimension.${one}`)])}
          onChoose={(one) => look({ by: one })}
        />
      </div>
      <ActiveFilters of={search.of ?? []} onChange={look} />
      <QueryResult query={days}>
        {({ usage: found }) => {
          const shown = byDay(found, show, period);
          if (found.length === 0)
            return (
              <EmptyMessage isNew title={t("usage.none")}>
                {t("usage.noneHint")}
              </EmptyMessage>
            );
          const title = t("usage.perDay", { measure: t(`usage.measures.${show}`) });
          return (
            <>
              <Sums rows={found} />
              <DayChart days={shown} measure={show} title={title} />
            </>
          );
        }}
      </QueryResult>
      <div className="mt-6">
        {days.data?.usage.length ? (
          <QueryResult query={rows}>
            {(reply) => (
              <>
                <UsageTable
                  by={by}
                  show={show}
                  rows={reply.usage}
                  onNarrow={(of) => look({ by: "execution", of: [...(search.of ?? []), of] })}
                />
                {reply.rows > reply.usage.length ? (
                  <p className="mt-2 text-ink-soft">
                    {t("usage.dearest", { shown: reply.usage.length, count: reply.rows })}
                  </p>
                ) : null}
              </>
            )}
          </QueryResult>
        ) : null}
      </div>
      <Budgets period={period} />
    </Page>
  );
}

function CustomPeriod(props: { period: Period; onChange: (change: UsageSearch) => void }) {
  const { t } = useTranslation();
  const id = useId();
  return (["since", "until"] as const).map((end) => (
    <div key={end}>
      <label htmlFor={`${id}-${end}`} className="mb-0.5 block text-xs font-medium text-ink-soft">
        {t(`usage.${end}`)}
      </label>
      <input
        id={`${id}-${end}`}
        type="date"
        className={`${BOX} h-8`}
        value={props.period[end]}
        onChange={(event) => props.onChange({ [end]: event.target.value })}
      />
    </div>
  ));
}

/** The active filters, each with a button to remove it. */
function ActiveFilters(props: { of: readonly string[]; onChange: (change: UsageSearch) => void }) {
  const { t } = useTranslation();
  if (props.of.length === 0) return null;
  return (
    <ul aria-label={t("usage.only")} className="mb-4 flex flex-wrap gap-2">
      {props.of.map((one) => {
        const [dimension = "", ...rest] = one.split(":");
        const known = DIMENSIONS.find((name) => name === dimension);
        const says = `${known ? t(`usage.dimension.${known}`) : dimension}: ${rest.join(":") || t("usage.noName")}`;
        return (
          <li key={one}>
            <button
              type="button"
              aria-label={t("usage.widen", { name: says })}
              className="inline-flex min-h-6 items-center gap-1 rounded-full bg-accent-soft px-2.5 py-0.5 text-accent hover:underline"
              onClick={() => props.onChange({ of: props.of.filter((other) => other !== one) })}
            >
              <bdi className="wrap-anywhere">{says}</bdi> <X className="size-3.5 shrink-0" aria-hidden />
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function Sums({ rows }: { rows: readonly Row[] }) {
  const { t, i18n } = useTranslation();
  const unpriced = rows.reduce((sum, row) => sum + row.unpricedCalls, 0);
  const scripted = rows.reduce((sum, row) => sum + row.scriptedCalls, 0);
  return (
    <>
      <dl className="mb-4 flex flex-wrap gap-3">
        {MEASURES.map((measure) => (
          <div key={measure} className="min-w-32 flex-1 rounded-lg border border-line bg-surface px-4 py-2.5">
            <dt className="text-xs text-ink-faint first-letter:uppercase">{t(`usage.measures.${measure}`)}</dt>
            <dd className="text-lg font-semibold tabular-nums">
              {formatMeasure(
                rows.reduce((sum, row) => sum + measureOf(row, measure), 0),
                measure,
                i18n.language,
              )}
            </dd>
          </div>
        ))}
      </dl>
      {unpriced > 0 ? <p className="mb-4 text-waiting">{t("usage.unpriced", { count: unpriced })}</p> : null}
      {scripted > 0 ? <p className="mb-4 text-ink-soft">{t("usage.scripted", { count: scripted })}</p> : null}
    </>
  );
}
