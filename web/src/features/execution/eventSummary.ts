/** What is kept of events that are long past: their place in the story, not what they carried. */
import type { JournalEvent } from "@/api/views";
import type { ExecutionTimeline } from "./timelineModel";

const KEPT = [
  "seq",
  "n",
  "at",
  "kind",
  "step",
  "node",
  "scope",
  "edge",
  "runs",
  "final",
  "attempt",
  "round",
  "purpose",
  "gate",
  "child",
  "usage",
  "cached",
  "failure",
  "origin",
  "row",
  "parent",
] as const;

/** The event without what it carried; the step it tells of lets go of that too. */
export function summarize(story: ExecutionTimeline, event: JournalEvent): JournalEvent {
  const kept: Record<string, unknown> = { isLight: true };
  for (const name of KEPT) if (event[name] !== undefined) kept[name] = event[name];
  const step = event.step === undefined ? undefined : story.steps.get(event.step);
  if (step) {
    step.isLight = true;
    step.writes = [];
    delete step.input;
    delete step.result;
    delete step.said;
    delete step.printed;
  }
  return kept as JournalEvent;
}
