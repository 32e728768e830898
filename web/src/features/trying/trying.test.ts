import { afterEach, describe, expect, it } from "vitest";
import type { Definition, DefinitionNode, JournalEvent } from "@/api/views";
import { makeDraft } from "@/features/editor/document/draft";
import { type StepRecord, timelineOf } from "@/features/execution/timelineModel";
import { arrivedAt, runWith } from "./arrived";
import { followRenames } from "./followRenames";
import { previousResults, type Run, stepsOf } from "./lastRuns";
import { branchesOf, sampleFor, sampleOf, withBranch } from "./sample";
import { tryoutOf } from "./tryout";

const node = (id: string, type: string, config: object = {}) => ({ id, type, config }) as DefinitionNode;
const arrow = (source: string, target: string, label?: string) => ({
  source,
  target,
  ...(label === undefined ? {} : { condition: { type: "label", label } }),
});
const FLOW: Definition = {
  id: "f",
  nodes: [
    node("plan", "agent", { prompt: "x" }),
    node("each", "parallel"),
    node("draft", "agent"),
    node("meet", "join"),
    node("ask", "human"),
    node("send", "agent"),
  ],
  edges: [
    arrow("plan", "each"),
    arrow("each", "draft"),
    arrow("draft", "meet"),
    arrow("meet", "ask"),
    arrow("ask", "send", "yes"),
    arrow("ask", "plan", "no"),
  ],
};

function ran(definition: Definition, ...steps: [string, string, unknown, object?][]): Run {
  let seq = 0;
  const events = steps.flatMap(([step, of, result, said]): JournalEvent[] => [
    { seq: ++seq, n: 0, at: seq, kind: "step_started", step, node: of },
    { seq: ++seq, n: 0, at: seq, kind: "step_succeeded", step, node: of, result, said },
  ]);
  return { execution: "e", story: timelineOf(events), definition };
}

it("finds the values that a step could read", () => {
  const run = ran(FLOW, ["plan", "plan", "first"], ["ask", "ask", "yes"], ["send", "send", "sent"]);
  const step = run.story.steps.get("send") as StepRecord;
  expect(arrivedAt({ topic: "tides" }, run, step)).toEqual({
    topic: "tides",
    nodes: { plan: "first", ask: "yes" },
  });
  expect(arrivedAt({ topic: "tides" }, run, run.story.steps.get("plan") as StepRecord)).toEqual({ topic: "tides" });
  expect(runWith([ran(FLOW, ["plan", "plan", 1]), run], "send")).toBe(run);
});

describe("results of previous runs", () => {
  const whole = ran(
    FLOW,
    ["plan", "plan", { items: [1, 2] }, { text: '{"items": [1, 2]}' }],
    ["each[1.0]/draft", "draft", "north"],
    ["each[1.1]/draft", "draft", "south"],
    ["ask", "ask", { response: "no" }, { branch: "no", action: "no" }],
    ["plan#2", "plan", { items: [] }],
  );

  it("are listed by branch and iteration", () => {
    expect(previousResults(FLOW, [whole], "send")).toEqual({
      "plan#1": { items: [1, 2] },
      "plan#2": { items: [] },
      "each[1.0]/draft#1": "north",
      "each[1.1]/draft#1": "south",
      "ask#1": { branch: "no", action: "no", response: "no" },
    });
  });

  it("come from the latest run that reached the node", () => {
    const short = ran(FLOW, ["plan", "plan", { items: [3] }]);
    expect([...stepsOf([short, whole], "draft").values()]).toEqual(["north", "south"]);
    expect(previousResults(FLOW, [short, whole], "meet")).toMatchObject({ "plan#1": { items: [3] } });
  });

  it("exclude mocked results", () => {
    const made = ran(FLOW, ["plan", "plan", "made up"]);
    made.story.mocked = new Set(["plan"]);
    expect([...stepsOf([made, whole], "plan").values()]).toEqual([{ items: [1, 2] }, { items: [] }]);
    expect(stepsOf([made], "plan").size).toBe(0);
  });

  it("exclude nodes that were changed since, except for name and position", () => {
    const [plan, ...rest] = FLOW.nodes as [DefinitionNode, ...DefinitionNode[]];
    const moved = {
      ...FLOW,
      nodes: [{ name: "Plan", position: { x: 1, y: 2 }, config: { prompt: "x" }, type: "agent", id: "plan" }, ...rest],
    };
    expect(Object.keys(previousResults(moved, [whole], "each"))).toContain("plan#1");
    const changed = { ...FLOW, nodes: [{ ...plan, config: { prompt: "y" } }, ...rest] };
    expect(Object.keys(previousResults(changed, [whole], "each"))).not.toContain("plan#1");
  });
});

describe("sample results", () => {
  it("take the first outgoing branch and the data of the form", () => {
    const form = { type: "object", properties: { why: { type: "string" } } };
    const ask = node("ask", "human", { options: [{ value: "later" }], form });
    expect(branchesOf(ask, FLOW)).toEqual(["yes", "no", "later"]);
    expect(sampleFor(ask, FLOW)).toMatchObject({ action: "yes", data: { why: "" } });
    expect(withBranch(ask, "no", { action: "yes", data: 7 })).toMatchObject({ action: "no", branch: "no", data: 7 });
    expect(sampleFor(node("d", "decision"), FLOW)).toEqual({ branch: "true" });
  });

  it("match the output schema of the node", () => {
    const schema = {
      $defs: { part: { type: "object", properties: { n: { type: "integer", minimum: 3 } } } },
      properties: {
        parts: { type: "array", items: { $ref: "#/$defs/part" } },
        mood: { enum: ["good", "bad"] },
        sure: { type: ["boolean", "null"] },
      },
    };
    expect(sampleOf(schema)).toEqual({ parts: [{ n: 3 }], mood: "good", sure: false });
    expect(sampleFor(node("a", "agent"), FLOW)).toBe("");
  });
});

describe("mocks and breakpoints", () => {
  afterEach(() => tryoutOf("f").setState({ pins: {}, breakpoints: [] }));

  it("follow a renamed node through undo and redo", () => {
    const store = makeDraft(FLOW);
    const stop = followRenames("f", store);
    const tryout = tryoutOf("f");
    tryout.getState().pin("plan", 1);
    tryout.getState().setBreakpoint("plan", true);
    const placed = () => [Object.keys(tryout.getState().pins), tryout.getState().breakpoints];
    store.getState().act({ op: "rename_node", node: "plan", to: "outline" });
    expect(placed()).toEqual([["outline"], ["outline"]]);
    store.getState().undo();
    expect(placed()).toEqual([["plan"], ["plan"]]);
    store.getState().redo();
    expect(placed()).toEqual([["outline"], ["outline"]]);
    stop();
  });
});
