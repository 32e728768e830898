/** Search events by kind and position, both as displayed and as stored. Each event is examined once per search text. */
import type { JournalEvent } from "@/api/views";

export class EventSearch {
  private searchText = "";
  private examined = 0;
  private found: number[] = [];

  /** `textOf` returns an event as displayed. */
  constructor(private readonly textOf: (event: JournalEvent) => string = () => "") {}

  /** Indices of the matching events among the first `count`, in order. `wanted` must be in lower case. */
  matches(events: readonly JournalEvent[], count: number, searchText: string): readonly number[] {
    if (searchText !== this.searchText) [this.searchText, this.examined, this.found] = [searchText, 0, []];
    for (; this.examined < count; this.examined++)
      if (this.isMatch(events[this.examined] as JournalEvent, searchText)) this.found.push(this.examined);
    const end = lowerBound(this.found, count);
    return end === this.found.length ? [...this.found] : this.found.slice(0, end);
  }

  private isMatch(event: JournalEvent, searchText: string): boolean {
    const { seq, n, kind, step, node } = event;
    return `${seq}.${n} ${kind} ${step ?? node ?? ""} ${this.textOf(event)}`.toLowerCase().includes(searchText);
  }
}

/** Return how many entries are smaller than `limit`. */
function lowerBound(sorted: readonly number[], limit: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
