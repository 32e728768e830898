import { describe, expect, it } from "vitest";
import type { JournalEvent } from "@/api/views";
import { FocusCollector, isInFocus, overlayOf } from "./focus";
import { type Lane, LaneBuilder, OPEN_MAX, ticksOf } from "./lanes";
import { applyEvent, emptyTimeline, timelineOf } from "./timelineModel";

let seq = 0;
function event(kind: string, step = "", more: Record<string, unknown> = {}): JournalEvent {
  seq += 1;
  const node = step.replace(/#\d+$/, "").replace(/^.*\//, "");
  return { seq, n: 0, at: seq, kind, ...(step ? { step, node } : {}), ...more };
}

function fan(branches: number): JournalEvent[] {
  const scope = (branch: number) => [{ parallel: "each", visit: 1, branch }];
  return [
    event("started"),
    event("step_started", "each"),
    ...Array.from({ length: branches }, (_, at) =>
      event("step_started", `each[1.${at}]/ask`, { scope: scope(at), edge: "each->ask" }),
    ),
    event("step_succeeded", "each[1.0]/ask"),
  ];
}

const names = (lanes: Lane[]) => lanes.map((lane) => `${"  ".repeat(lane.depth)}${lane.key}`);

describe("lanes of a timeline", () => {
  it("groups the steps of a branch under it", () => {
    const lanes = new LaneBuilder().of(timelineOf(fan(2)));
    expect(names(lanes)).toEqual(["each", "each[1.0]", "  each[1.0]/ask", "each[1.1]", "  each[1.1]/ask"]);
    expect(lanes[1]).toMatchObject({ kind: "branch", node: "each", branch: 0, steps: 1, isOpen: true });
    expect(lanes[3]).toMatchObject({ to: null });
  });

  it("collapses many branches at first and opens them one by one", () => {
    const timeline = timelineOf(fan(OPEN_MAX + 1));
    expect(new LaneBuilder().of(timeline).length).toBe(OPEN_MAX + 2);
    expect(names(new LaneBuilder().of(timeline, new Map([["each[1.3]", true]])))).toContain("  each[1.3]/ask");
  });

  it("builds the same lanes from any starting point, and again after going back in time", () => {
    const events = fan(4);
    const [lanes, places, timeline] = [new LaneBuilder(), new FocusCollector(), emptyTimeline()];
    for (const one of events) {
      applyEvent(timeline, one);
      expect(lanes.of({ ...timeline })).toEqual(new LaneBuilder().of(timeline));
      expect(places.of({ ...timeline })).toEqual(new FocusCollector().of(timeline));
    }
    expect(places.of({ ...timeline })).toBe(places.of(timeline));
    expect(lanes.of(timeline)[2]).toBe(lanes.of({ ...timeline })[2]);
    const before = timelineOf(events, 3);
    expect(names(lanes.of(before))).toEqual(["each", "each[1.0]", "  each[1.0]/ask"]);
    expect(places.of(before).map((place) => place.key)).toEqual(["each[1.0]"]);
  });

  it("marks the time axis at round intervals", () => {
    expect(ticksOf(10, 5)).toEqual([0, 5, 10]);
    expect(ticksOf(0.05, 5)).toEqual([0, 0.01, 0.02, 0.03, 0.04, 0.05]);
  });
});

describe("focus on one branch or round", () => {
  it("shows only the steps of a branch in the graph", () => {
    const timeline = timelineOf(fan(3));
    expect(new FocusCollector().of(timeline).map((place) => place.key)).toEqual([
      "each[1.0]",
      "each[1.1]",
      "each[1.2]",
    ]);
    const [all, , active] = overlayOf(timeline, null);
    expect(all.get("ask")).toMatchObject({ look: "running", count: "1/3" });
    expect(active?.get("each->ask")).toBe(2);
    const [boxes, taken, none] = overlayOf(timeline, "each[1.0]");
    expect([...boxes.keys()]).toEqual(["ask"]);
    expect(boxes.get("ask")).toMatchObject({ look: "done", count: "" });
    expect([taken.get("each->ask"), none?.size]).toEqual([1, 0]);
  });

  it("shows only the steps that began during a round", () => {
    const loop = { node: "improve", scope: [] };
    const timeline = timelineOf([
      event("step_passed", "improve"),
      event("loop_entered", "", loop),
      event("step_started", "draft"),
      event("step_succeeded", "draft"),
      event("loop_round", "", { ...loop, round: 2 }),
      event("step_started", "draft#2"),
      event("loop_left", "", loop),
      event("step_started", "send"),
    ]);
    expect(new FocusCollector().of(timeline).map((place) => [place.node, place.number])).toEqual([
      ["improve", 1],
      ["improve", 2],
    ]);
    const at = (place: string) => timeline.order.filter((name) => isInFocus(timeline.steps.get(name) as never, place));
    expect([at("improve 1"), at("improve 2")]).toEqual([["draft"], ["draft#2"]]);
  });
});
