import { describe, expect, it } from "vitest";
import type { JournalEvent } from "@/api/views";
import { statusOf, timelineOf } from "./timelineModel";

let seq = 0;
function event(kind: string, step = "", more: Record<string, unknown> = {}): JournalEvent {
  seq += 1;
  const node = step.replace(/#\d+$/, "").replace(/^.*\//, "");
  return { seq, n: 0, at: seq, kind, ...(step ? { step, node } : {}), ...more };
}

describe("timeline of an execution", () => {
  it("lists the steps that ran and their results", () => {
    const timeline = timelineOf([
      event("started"),
      event("step_started", "a", { input: { prompt: "go" } }),
      event("step_succeeded", "a", {
        result: "one",
        writes: [
          [["x"], "set", 1, false],
          [["y"], "set", null, true],
        ],
        usage: { input_tokens: 3 },
      }),
      event("step_started", "b", { edge: "a->b" }),
      event("completed"),
    ]);
    expect(timeline.status).toBe("completed");
    expect(timeline.order).toEqual(["a", "b"]);
    expect(timeline.steps.get("a")).toMatchObject({ status: "done", result: "one", usage: { input_tokens: 3 } });
    expect(timeline.steps.get("a")?.writes).toEqual([
      { path: ["x"], reduce: "set", value: 1 },
      { path: ["y"], reduce: "set", value: "one" },
    ]);
    expect(timeline.takenEdges.get("a->b")).toBe(1);
  });

  it("counts the visits of a node and shows open steps before ended ones", () => {
    const events = [
      event("step_started", "a"),
      event("step_failed", "a", { final: true, failure: { code: "x", message: "no" } }),
      event("step_started", "a#2"),
    ];
    const timeline = timelineOf(events);
    expect(timeline.nodes.get("a")).toMatchObject({ failed: 1, open: 1, steps: ["a", "a#2"] });
    expect(statusOf(timeline.nodes.get("a"))).toBe("running");
    expect(statusOf(timelineOf(events, 2).nodes.get("a"))).toBe("failed");
  });

  it("keeps a retried step open and adds up the usage of its attempts", () => {
    const timeline = timelineOf([
      event("step_started", "a"),
      event("step_failed", "a", { final: false, failure: { code: "x", message: "no" }, usage: { model_calls: 1 } }),
      event("attempt_started", "a", { attempt: 2 }),
      event("step_succeeded", "a", { usage: { model_calls: 1 } }),
    ]);
    expect(timeline.steps.get("a")).toMatchObject({ status: "done", attempt: 2, usage: { model_calls: 2 } });
    expect(timeline.nodes.get("a")).toMatchObject({ done: 1, open: 0, failed: 0 });
    expect(timeline.steps.get("a")?.spans.map((span) => span.status)).toEqual(["failed", "done"]);
  });

  it("shows waits as waits", () => {
    const timeline = timelineOf([event("step_started", "g"), event("gate_opened", "g", { gate: "g" })]);
    expect(statusOf(timeline.nodes.get("g"))).toBe("waiting");
    expect(timeline.steps.get("g")?.spans.at(-1)).toMatchObject({ status: "waiting", to: null });
  });

  it("ignores unknown kinds of events", () => {
    expect(timelineOf([event("something_new", "a"), event("step_succeeded", "nobody")]).steps.size).toBe(0);
  });
});
