/** The filters of the list of executions. The address holds them, so that a user can share the link. */
import type { ExecutionFilter } from "@/api/queries";
import type { ExecutionStatus } from "@/api/views";

export const STATUSES: readonly ExecutionStatus[] = [
  "running",
  "stopped",
  "waiting",
  "paused",
  "interrupted",
  "completed",
  "failed",
  "cancelled",
];

export interface ExecutionSearch {
  workflow?: string;
  status?: string[];
  q?: string;
  /** Days in the user's time zone. */
  since?: string;
  until?: string;
  order?: "asc";
  trials?: true;
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Convert the search in the address to the server's filter. Unknown values are ignored. */
export function filterOf(search: ExecutionSearch): ExecutionFilter {
  const status = STATUSES.filter((one) => search.status?.includes(one));
  const since = startOfDay(search.since, 0);
  const until = startOfDay(search.until, 1);
  return {
    ...(search.workflow ? { workflow: search.workflow } : {}),
    ...(status.length > 0 ? { status } : {}),
    ...(search.q ? { q: search.q } : {}),
    ...(since === null ? {} : { since }),
    ...(until === null ? {} : { until }),
    ...(search.order && !search.q ? { order: search.order } : {}),
    ...(search.trials ? { trials: "true" } : {}),
  };
}

/** Return the search without empty filters. */
export function withoutEmpty(search: { [name in keyof ExecutionSearch]: ExecutionSearch[name] | undefined }) {
  const entries = Object.entries(search).filter(([, value]) =>
    Array.isArray(value) ? value.length > 0 : Boolean(value),
  );
  return Object.fromEntries(entries) as ExecutionSearch;
}

/** Start of a day, or of a day `later` days after it, in the user's time zone, as Unix seconds. Null if `day` is not a
 * date. */
function startOfDay(day: string | undefined, later: number): number | null {
  if (!day || !DAY.test(day)) return null;
  const [year = 0, month = 0, date = 0] = day.split("-").map(Number);
  const at = new Date(year, month - 1, date + later).getTime() / 1000;
  return at >= 0 ? at : null;
}
