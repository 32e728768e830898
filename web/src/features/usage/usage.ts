/** Queries of usage and budgets. Days are in UTC, as the server counts them. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, query } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Row = Schemas["UsageRow"];
export type BudgetRow = Schemas["BudgetRow"];
export const DIMENSIONS = ["workflow", "node", "model", "key", "user", "execution", "day"] as const;
export type Dimension = (typeof DIMENSIONS)[number];
export const MEASURES = ["costUsd", "tokens", "modelCalls", "steps", "seconds"] as const;
export type Measure = (typeof MEASURES)[number];
export const RANGES = ["7", "30", "90", "all", "own"] as const;
export type Range = (typeof RANGES)[number];

const DAY_MS = 86_400_000;
const DAYS_MAX = 400;

export interface Period {
  since: string;
  until: string;
}

/** Period and filters of a usage query; a filter is `dimension:name`. */
export interface UsageQuery extends Period {
  of?: readonly string[];
}

/** At most this many rows are loaded; the response has the total number. */
const ROWS_MAX = 1000;
const DAYS_ASKED_MAX = 10_000;

export const usage = (by: Dimension, counted: UsageQuery) =>
  queryOptions({
    queryKey: ["usage", by, counted],
    queryFn: ({ signal }) => {
      const limit = by === "day" ? DAYS_ASKED_MAX : ROWS_MAX;
      return apiRequest<Schemas["UsageTable"]>(`/api/usage${query({ by, limit, ...counted })}`, { signal });
    },
  });

export const csvAddress = (by: Dimension, counted: UsageQuery) =>
  `/api/usage${query({ by, limit: DAYS_ASKED_MAX, ...counted, csv: "true" })}`;

/** The budgets of executions by workflow. */
export const budgets = (period: Period) =>
  queryOptions({
    queryKey: ["usage", "budgets", period],
    queryFn: ({ signal }) =>
      apiRequest<Schemas["BudgetReport"]>(`/api/budgets${query({ ...period })}`, { signal }).then(
        (response) => response.budgets,
      ),
  });

export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** The period of the last days up to now; unlimited if the range is not a number. */
export function lastDays(range: Range, at: number): Period {
  const days = Number(range);
  return Number.isNaN(days) ? { since: "", until: "" } : { since: dayOf(at - (days - 1) * DAY_MS), until: dayOf(at) };
}

export function measureOf(row: Row, measure: Measure): number {
  return measure === "tokens" ? row.inputTokens + row.outputTokens : (row[measure] ?? 0);
}

/** The name of a row in a dimension. */
export function nameOf(row: Row, by: Dimension): string {
  return String((row as Record<string, unknown>)[by] ?? "");
}

/** One value for each day of the period; days without usage are zero. */
export function byDay(rows: readonly Row[], measure: Measure, period: Period): [string, number][] {
  const found = new Map(rows.map((row) => [nameOf(row, "day"), measureOf(row, measure)]));
  const known = [...found.keys()].sort();
  const first = period.since || known[0];
  const last = period.until || known.at(-1);
  if (first === undefined || last === undefined) return [];
  const begin = Date.parse(first);
  const count = Math.round((Date.parse(last) - begin) / DAY_MS) + 1;
  if (!(count > 0)) return [];
  const skipped = Math.max(0, count - DAYS_MAX);
  return Array.from({ length: count - skipped }, (_, at) => {
    const day = dayOf(begin + (at + skipped) * DAY_MS);
    return [day, found.get(day) ?? 0] as [string, number];
  });
}

/** The share of its budget that the execution with the highest usage took. */
export function partOf(row: BudgetRow): number {
  return row.most > 0 ? row.highest / row.most : row.highest > 0 ? 1 : 0;
}

/** Format a value as money, time or count. */
export function formatMeasure(value: number, measure: Measure | BudgetRow["measure"], language: string): string {
  if (measure === "costUsd")
    return new Intl.NumberFormat(language, {
      style: "currency",
      currency: "USD",
      maximumFractionDigits: value !== 0 && value < 1 ? 4 : 2,
    }).format(value);
  if (measure === "seconds" && value < 600)
    return `${new Intl.NumberFormat(language, { maximumFractionDigits: value < 10 ? 1 : 0 }).format(value)} s`;
  if (measure === "seconds")
    return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value / 3600)} h`;
  return new Intl.NumberFormat(language).format(value);
}

/** The next round number, as the end of an axis. */
export function ceiling(value: number): number {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * size).find((one) => one >= value * 0.9999) ?? 10 * size;
}
