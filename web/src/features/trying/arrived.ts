/** The values that a step could read: the state when it began, and the results of the nodes before it. */
import type { Json, JsonObject } from "@/api/views";
import type { StepRecord } from "@/features/execution/timelineModel";
import { type Run, resultOf } from "./lastRuns";

export function arrivedAt(state: JsonObject, run: Run, step: StepRecord): JsonObject {
  const results: Record<string, Json> = {};
  for (const name of run.story.order) {
    if (name === step.step) break;
    const one = run.story.steps.get(name);
    const result = resultOf(one);
    if (one && result !== undefined && one.node !== step.node) results[one.node] = result;
  }
  return Object.keys(results).length > 0 ? { ...state, nodes: results } : state;
}

/** The run that reached the node last; undefined: none of them did. */
export function runWith(runs: readonly Run[], node: string): Run | undefined {
  return runs.find((run) => (run.story.nodes.get(node)?.steps.length ?? 0) > 0);
}
