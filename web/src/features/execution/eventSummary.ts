/** Summaries of old events: their position and effect on the timeline, without their data. They keep a long journal
 * small in memory. */
import type { JournalEvent } from "@/api/views";
import type { ExecutionTimeline } from "./timelineModel";

const SUMMARY_FIELDS = [
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

/** Return the event without its data, and drop the data from its step. */
export function summarize(timeline: ExecutionTimeline, event: JournalEvent): JournalEvent {
  const summary: Record<string, unknown> = { isSummary: true };
  for (const name of SUMMARY_FIELDS) if (event[name] !== undefined) summary[name] = event[name];
  const step = event.step === undefined ? undefined : timeline.steps.get(event.step);
  if (step) {
    step.isSummary = true;
    step.writes = [];
    delete step.input;
    delete step.result;
    delete step.response;
    delete step.printed;
  }
  return summary as JournalEvent;
}
