import { describe, expect, it } from "vitest";
import type { JournalEvent, Schemas } from "@/api/views";
import { firstDifference, groupsOf, pairsOf } from "./alignment";
import { branchesOf } from "./branches";
import { changedFields } from "./changedFields";
import { costsOf, sorted, totalOf } from "./costs";
import { limitIn } from "./limit";
import { applyEvent, type StepRecord, timelineOf } from "./timelineModel";

function ran(...steps: [string, unknown?, Record<string, unknown>?][]) {
  let seq = 0;
  const events: JournalEvent[] = [];
  for (const [step, result, more] of steps) {
    const node = step.replace(/#\d+$/, "");
    events.push({ seq: ++seq, n: 0, at: seq, kind: "step_started", step, node });
    events.push({ seq: ++seq, n: 0, at: seq, kind: "step_succeeded", step, node, result, ...more });
  }
  return timelineOf(events);
}

describe("comparison of two executions", () => {
  it("aligns the steps and finds the first difference", () => {
    const pairs = pairsOf(
      ran(["write", "a"], ["review", "ok"], ["send", 1]),
      ran(["write", "a"], ["review", "again"], ["write#2", "b"], ["send", 1]),
    );
    expect(pairs.map((pair) => [pair.step, pair.difference])).toEqual([
      ["write", "same"],
      ["review", "result"],
      ["write#2", "only-b"],
      ["send", "same"],
    ]);
    expect(firstDifference(pairs)).toBe(1);
    expect(firstDifference(pairsOf(ran(["a", 1]), ran(["a", 1])))).toBe(-1);
  });

  it("groups each branch and each round into one block", () => {
    const timeline = (rounds: number, south: string) => {
      const branch = (nth: number) => [{ parallel: "each", visit: 1, branch: nth }];
      const one = ran(["plan"], ["north", 1], ["south", south], ["north2", 1], ["end"]);
      for (const [step, nth] of [
        ["north", 0],
        ["south", 1],
        ["north2", 0],
      ] as const)
        (one.steps.get(step) as StepRecord).scope = branch(nth);
      for (let round = 1; round <= rounds; round++) {
        applyEvent(one, { seq: 90, n: 0, at: 90, kind: "step_started", step: `rate#${round}`, node: "rate" });
        (one.steps.get(`rate#${round}`) as StepRecord).round = `better ${round}`;
      }
      return one;
    };
    const groups = groupsOf(pairsOf(timeline(1, "a"), timeline(2, "b")));
    expect(groups.map((one) => [one.branch, one.round, one.pairs.map((pair) => pair.step), one.difference])).toEqual([
      ["", "", ["plan"], "same"],
      ["each[1.0]", "", ["north", "north2"], "same"],
      ["each[1.1]", "", ["south"], "differs"],
      ["", "", ["end"], "same"],
      ["", "better 1", ["rate#1"], "same"],
      ["", "better 2", ["rate#2"], "only-b"],
    ]);
  });

  it("lists steps that only the first execution has", () => {
    expect(pairsOf(ran(["a"], ["b"]), ran(["a"])).map((pair) => pair.difference)).toEqual(["same", "only-a"]);
  });
});

describe("usage of nodes", () => {
  it("adds up usage by node, sorts it, and keeps unknown prices apart from zero", () => {
    const timeline = ran(
      ["a", 1, { usage: { model_calls: 1, input_tokens: 10, output_tokens: 2, cost_usd: 0.5 } }],
      ["a#2", 1, { usage: { model_calls: 2, input_tokens: 5, output_tokens: 1, cost_usd: 0.25 } }],
      ["b", 1, { usage: { model_calls: 1 } }],
    );
    const costs = costsOf(timeline);
    expect(costs.find((one) => one.node === "a")).toMatchObject({ steps: 2, calls: 3, input: 15, cost: 0.75 });
    expect(costs.find((one) => one.node === "b")?.cost).toBeNull();
    expect(sorted(costs, { by: "cost", isDown: false }).map((one) => one.node)).toEqual(["b", "a"]);
    expect(totalOf(costs)).toMatchObject({ steps: 3, calls: 4, cost: 0.75 });
  });
});

describe("forks of an execution", () => {
  it("orders forks below their origin by row", () => {
    const entry = (executionId: string, origin: string | null, row: number | null) =>
      ({ executionId, origin, row, before: null }) as Schemas["ForkEntry"];
    const kin = {
      parents: [],
      children: [],
      complete: true,
      origin: { origin: "root", row: 7, before: null },
      forks: [entry("root", null, null), entry("late", "root", 9), entry("deep", "self", 8), entry("lost", "gone", 2)],
    } as unknown as Schemas["Relations"];
    expect(branchesOf("self", kin).map((one) => [one.execution, one.depth, one.row])).toEqual([
      ["root", 0, null],
      ["self", 1, 7],
      ["deep", 2, 8],
      ["late", 1, 9],
      ["lost", 0, 2],
    ]);
  });
});

describe("changes made by a user", () => {
  it("sends changes field by field", () => {
    const before = { a: 1, b: { c: 1 }, gone: true };
    expect(changedFields(before, { a: 1, b: { c: 2 }, fresh: "x" })).toEqual({ b: { c: 2 }, gone: null, fresh: "x" });
  });

  it("finds the limit that stopped an execution by its name", () => {
    const errors = [{ code: "limit-maxSteps", message: "3 steps" }];
    const limit = { name: "maxSteps", now: 3, used: 3, next: 6, most: null };
    expect(limitIn({ status: "interrupted", errors, limit })).toEqual({
      name: "maxSteps",
      message: "3 steps",
      offer: limit,
    });
    expect(limitIn({ status: "failed", errors })).toBeNull();
    expect(limitIn({ status: "paused", errors }), "a person paused it").toBeNull();
    expect(limitIn({ status: "paused", errors, limit })?.name, "its budget paused it").toBe("maxSteps");
  });
});
