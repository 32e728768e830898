/** Load old events from the journal again, by row and number. */
import { apiRequest, query } from "@/api/http";
import { executionPath } from "@/api/queries";
import type { EventPage, JournalEvent } from "@/api/views";

/** Events of one row at most this far apart are loaded by one request. */
const RANGE_EVENTS_MAX = 200;

interface EventRange {
  seq: number;
  from: number;
  to: number;
}

/** `positions` holds row and number of each event, alternating, in journal order. */
export async function reloadEvents(execution: string, positions: readonly number[]): Promise<JournalEvent[]> {
  const wanted = new Set<string>();
  for (let at = 0; at < positions.length; at += 2) wanted.add(`${positions[at]}.${positions[at + 1]}`);
  const found = await Promise.all(rangesIn(positions).map((one) => loadRange(execution, one)));
  return found.flat().filter((event) => wanted.has(`${event.seq}.${event.n}`));
}

export function rangesIn(positions: readonly number[]): EventRange[] {
  const found: EventRange[] = [];
  for (let at = 0; at < positions.length; at += 2) {
    const [seq, n] = [positions[at] as number, positions[at + 1] as number];
    const last = found.at(-1);
    if (last?.seq === seq && n - last.from < RANGE_EVENTS_MAX) last.to = n;
    else found.push({ seq, from: n, to: n });
  }
  return found;
}

async function loadRange(execution: string, { seq, from, to }: EventRange): Promise<JournalEvent[]> {
  const after = from === 0 ? String(seq) : `${seq}.${from - 1}`;
  const path = `${executionPath(execution)}/events${query({ after, limit: to - from + 1 })}`;
  return (await apiRequest<EventPage>(path)).events;
}
