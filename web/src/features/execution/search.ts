/** Which events fit some words, by what happened and where: as people read it, and as it is written down. Each event is looked at once, however often it is asked. */
import type { JournalEvent } from "@/api/views";

export class Search {
  private wanted = "";
  private seen = 0;
  private found: number[] = [];

  /** `said`: an event as people read it. */
  constructor(private readonly said: (event: JournalEvent) => string = () => "") {}

  /** Where those stand that fit among the first `count`, in order. `wanted` is in lower case. */
  among(events: readonly JournalEvent[], count: number, wanted: string): readonly number[] {
    if (wanted !== this.wanted) [this.wanted, this.seen, this.found] = [wanted, 0, []];
    for (; this.seen < count; this.seen++)
      if (this.fits(events[this.seen] as JournalEvent, wanted)) this.found.push(this.seen);
    const end = before(this.found, count);
    return end === this.found.length ? [...this.found] : this.found.slice(0, end);
  }

  private fits(event: JournalEvent, wanted: string): boolean {
    const { seq, n, kind, step, node } = event;
    return `${seq}.${n} ${kind} ${step ?? node ?? ""} ${this.said(event)}`.toLowerCase().includes(wanted);
  }
}

/** How many are smaller. */
function before(sorted: readonly number[], limit: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
