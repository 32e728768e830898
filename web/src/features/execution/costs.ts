/** The usage of each node of an execution. */
import type { ExecutionTimeline, Span, StepRecord } from "./timelineModel";

export interface Cost {
  node: string;
  steps: number;
  /** Time spent working, without waits. */
  seconds: number;
  calls: number;
  tools: number;
  input: number;
  output: number;
  /** Null if the price is unknown. */
  cost: number | null;
}

export interface Sort {
  by: keyof Cost;
  isDown: boolean;
}

export function costsOf(timeline: ExecutionTimeline): Cost[] {
  const found = new Map<string, Cost>();
  for (const name of timeline.order) {
    const step = timeline.steps.get(name) as StepRecord;
    found.set(step.node, sum(found.get(step.node) ?? emptyCost(step.node), costOf(step)));
  }
  return [...found.values()];
}

export function totalOf(costs: readonly Cost[]): Cost {
  return costs.reduce(sum, emptyCost(""));
}

export function sorted(costs: readonly Cost[], { by, isDown }: Sort): Cost[] {
  const value = (one: Cost) => one[by] ?? -1;
  const order = (a: Cost, b: Cost) =>
    by === "node" ? a.node.localeCompare(b.node) : Number(value(a)) - Number(value(b)) || b.seconds - a.seconds;
  return [...costs].sort((a, b) => (isDown ? -order(a, b) : order(a, b)));
}

function costOf(step: StepRecord): Cost {
  const usage = step.usage ?? {};
  return {
    node: step.node,
    steps: 1,
    seconds: step.spans.filter(isWorking).reduce((all, one) => all + ((one.to ?? one.from) - one.from), 0),
    calls: usage.model_calls ?? 0,
    tools: usage.tool_calls ?? 0,
    input: usage.input_tokens ?? 0,
    output: usage.output_tokens ?? 0,
    cost: usage.cost_usd ?? null,
  };
}

function isWorking(one: Span): boolean {
  return one.status !== "waiting" && one.status !== "pending";
}

function emptyCost(node: string): Cost {
  return { node, steps: 0, seconds: 0, calls: 0, tools: 0, input: 0, output: 0, cost: null };
}

function sum(a: Cost, b: Cost): Cost {
  return {
    node: a.node,
    steps: a.steps + b.steps,
    seconds: a.seconds + b.seconds,
    calls: a.calls + b.calls,
    tools: a.tools + b.tools,
    input: a.input + b.input,
    output: a.output + b.output,
    cost: a.cost === null && b.cost === null ? null : (a.cost ?? 0) + (b.cost ?? 0),
  };
}
