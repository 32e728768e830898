/** Events that are long past, read again from the journal: by their places, wherever in their rows they are. */
import { ask, query } from "@/api/http";
import { executionPath } from "@/api/queries";
import type { EventPage, JournalEvent } from "@/api/views";

/** Events of one row that lie so near are read together. */
const NEAR = 200;

interface Stretch {
  seq: number;
  from: number;
  to: number;
}

/** `places`: row and number of each, in the order of the journal. */
export async function reloadEvents(execution: string, places: readonly number[]): Promise<JournalEvent[]> {
  const wanted = new Set<string>();
  for (let at = 0; at < places.length; at += 2) wanted.add(`${places[at]}.${places[at + 1]}`);
  const found = await Promise.all(rangesIn(places).map((one) => read(execution, one)));
  return found.flat().filter((event) => wanted.has(`${event.seq}.${event.n}`));
}

export function rangesIn(places: readonly number[]): Stretch[] {
  const found: Stretch[] = [];
  for (let at = 0; at < places.length; at += 2) {
    const [seq, n] = [places[at] as number, places[at + 1] as number];
    const last = found.at(-1);
    if (last?.seq === seq && n - last.from < NEAR) last.to = n;
    else found.push({ seq, from: n, to: n });
  }
  return found;
}

async function read(execution: string, { seq, from, to }: Stretch): Promise<JournalEvent[]> {
  const after = from === 0 ? String(seq) : `${seq}.${from - 1}`;
  const path = `${executionPath(execution)}/events${query({ after, limit: to - from + 1 })}`;
  return (await ask<EventPage>(path)).events;
}
