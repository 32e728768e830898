/** The story as it was after some events. Going on in time tells only what is new; going back begins again. */
import type { JournalEvent } from "@/api/views";
import { emptyStory, type Story, tell } from "./story";

export class Past {
  private story = emptyStory();

  /** Another object each time; what it holds is told further by the next one. */
  after(events: readonly JournalEvent[], count: number): Story {
    if (count < this.story.count) this.story = emptyStory();
    while (this.story.count < count) tell(this.story, events[this.story.count] as JournalEvent);
    return { ...this.story };
  }
}
