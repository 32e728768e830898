import { describe, expect, it } from "vitest";
import type { JournalEvent } from "@/api/views";
import { EventSearch } from "./eventSearch";
import { ReplayState } from "./replayState";
import { timelineOf } from "./timelineModel";

const events: JournalEvent[] = Array.from({ length: 60 }, (_, at) => ({
  seq: 1,
  n: at,
  at: at + 1,
  kind: at % 2 ? "step_succeeded" : "step_started",
  step: `tick#${Math.floor(at / 2)}`,
  node: "tick",
}));

describe("timeline at a position", () => {
  it("is the same after moving forward and backward", () => {
    const past = new ReplayState();
    for (const count of [1, 7, 8, 40, 12, 60, 3]) {
      const timeline = past.after(events, count);
      expect(timeline).toEqual(timelineOf(events, count));
    }
  });

  it("loads event data again where only summaries are in memory", () => {
    const light = events.map((event) => ({ ...event, isSummary: true }));
    expect(new ReplayState().after(light, 4).steps.get("tick#1")?.isSummary).toBe(true);
    expect(new ReplayState().after(events, 4).steps.get("tick#1")?.isSummary).toBeUndefined();
  });
});

describe("search of events", () => {
  it("finds events by kind, step and position, up to the displayed one", () => {
    const search = new EventSearch();
    expect(search.matches(events, 60, "tick#29")).toEqual([58, 59]);
    expect(search.matches(events, 10, "started")).toEqual([0, 2, 4, 6, 8]);
    expect(search.matches(events, 5, "started")).toEqual([0, 2, 4]);
    expect(search.matches(events, 14, "started")).toEqual([0, 2, 4, 6, 8, 10, 12]);
    expect(search.matches(events, 60, "1.17 ")).toEqual([17]);
    expect(search.matches(events, 60, "nothing")).toEqual([]);
  });
});
