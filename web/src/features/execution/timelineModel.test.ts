import { describe, expect, it } from "vitest";
import type { JournalEvent } from "@/api/views";
import { lookOf, timelineOf } from "./timelineModel";

let seq = 0;
function event(kind: string, step = "", more: Record<string, unknown> = {}): JournalEvent {
  seq += 1;
  const node = step.replace(/#\d+$/, "").replace(/^.*\//, "");
  return { seq, n: 0, at: seq, kind, ...(step ? { step, node } : {}), ...more };
}

describe("the story of an execution", () => {
  it("tells which steps ran, and what they brought", () => {
    const story = timelineOf([
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
    expect(story.status).toBe("completed");
    expect(story.order).toEqual(["a", "b"]);
    expect(story.steps.get("a")).toMatchObject({ status: "done", result: "one", usage: { input_tokens: 3 } });
    expect(story.steps.get("a")?.writes).toEqual([
      { path: ["x"], reduce: "set", value: 1 },
      { path: ["y"], reduce: "set", value: "one" },
    ]);
    expect(story.taken.get("a->b")).toBe(1);
  });

  it("counts the steps of a node that is visited again, and shows what is open before what is over", () => {
    const events = [
      event("step_started", "a"),
      event("step_failed", "a", { final: true, failure: { code: "x", message: "no" } }),
      event("step_started", "a#2"),
    ];
    const story = timelineOf(events);
    expect(story.nodes.get("a")).toMatchObject({ failed: 1, open: 1, steps: ["a", "a#2"] });
    expect(lookOf(story.nodes.get("a"))).toBe("running");
    expect(lookOf(timelineOf(events, 2).nodes.get("a"))).toBe("failed");
  });

  it("takes a step that is tried again for open, and keeps what the first try cost", () => {
    const story = timelineOf([
      event("step_started", "a"),
      event("step_failed", "a", { final: false, failure: { code: "x", message: "no" }, usage: { model_calls: 1 } }),
      event("attempt_started", "a", { attempt: 2 }),
      event("step_succeeded", "a", { usage: { model_calls: 1 } }),
    ]);
    expect(story.steps.get("a")).toMatchObject({ status: "done", attempt: 2, usage: { model_calls: 2 } });
    expect(story.nodes.get("a")).toMatchObject({ done: 1, open: 0, failed: 0 });
    expect(story.steps.get("a")?.spans.map((span) => span.status)).toEqual(["failed", "done"]);
  });

  it("shows waits as waits", () => {
    const story = timelineOf([event("step_started", "g"), event("gate_opened", "g", { gate: "g" })]);
    expect(lookOf(story.nodes.get("g"))).toBe("waiting");
    expect(story.steps.get("g")?.spans.at(-1)).toMatchObject({ status: "waiting", to: null });
  });

  it("does not mind kinds of events it does not know", () => {
    expect(timelineOf([event("something_new", "a"), event("step_succeeded", "nobody")]).steps.size).toBe(0);
  });
});
