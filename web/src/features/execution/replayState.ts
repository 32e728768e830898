/** The timeline after a number of events. Moving forward applies only the new events; moving back starts again. */
import type { JournalEvent } from "@/api/views";
import { applyEvent, type ExecutionTimeline, emptyTimeline } from "./timelineModel";

export class ReplayState {
  private timeline = emptyTimeline();

  /** Returns a new object each time; later calls update the maps it holds. */
  after(events: readonly JournalEvent[], count: number): ExecutionTimeline {
    if (count < this.timeline.count) this.timeline = emptyTimeline();
    while (this.timeline.count < count) applyEvent(this.timeline, events[this.timeline.count] as JournalEvent);
    return { ...this.timeline };
  }
}
