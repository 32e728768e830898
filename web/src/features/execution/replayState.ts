/** The story as it was after some events. Going on in time tells only what is new; going back begins again. */
import type { JournalEvent } from "@/api/views";
import { applyEvent, type ExecutionTimeline, emptyTimeline } from "./timelineModel";

export class ReplayState {
  private story = emptyTimeline();

  /** Another object each time; what it holds is told further by the next one. */
  after(events: readonly JournalEvent[], count: number): ExecutionTimeline {
    if (count < this.story.count) this.story = emptyTimeline();
    while (this.story.count < count) applyEvent(this.story, events[this.story.count] as JournalEvent);
    return { ...this.story };
  }
}
