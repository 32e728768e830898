/** What the list of executions is narrowed by, as the address says: it can be sent to somebody. */
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
  /** Days, as they are where one looks. */
  since?: string;
  until?: string;
  order?: "asc";
  trials?: true;
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** As the server is asked. What the address says and nobody means is left out. */
export function filterOf(search: ExecutionSearch): ExecutionFilter {
  const status = STATUSES.filter((one) => search.status?.includes(one));
  const since = beginOf(search.since, 0);
  const until = beginOf(search.until, 1);
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

/** Only what narrows. */
export function narrowed(search: { [name in keyof ExecutionSearch]: ExecutionSearch[name] | undefined }) {
  const said = Object.entries(search).filter(([, value]) => (Array.isArray(value) ? value.length > 0 : Boolean(value)));
  return Object.fromEntries(said) as ExecutionSearch;
}

/** When a day begins here, or one after it: in unix seconds. Null: it is no day. */
function beginOf(day: string | undefined, later: number): number | null {
  if (!day || !DAY.test(day)) return null;
  const [year = 0, month = 0, date = 0] = day.split("-").map(Number);
  const at = new Date(year, month - 1, date + later).getTime() / 1000;
  return at >= 0 ? at : null;
}
