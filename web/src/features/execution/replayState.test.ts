import { describe, expect, it } from "vitest";
import type { JournalEvent } from "@/api/views";
import { ReplayState } from "./replayState";
import { Search } from "./search";
import { timelineOf } from "./timelineModel";

const events: JournalEvent[] = Array.from({ length: 60 }, (_, at) => ({
  seq: 1,
  n: at,
  at: at + 1,
  kind: at % 2 ? "step_succeeded" : "step_started",
  step: `tick#${Math.floor(at / 2)}`,
  node: "tick",
}));

describe("the story as it was", () => {
  it("is the same however one came there", () => {
    const past = new ReplayState();
    for (const count of [1, 7, 8, 40, 12, 60, 3]) {
      const story = past.after(events, count);
      expect(story).toEqual(timelineOf(events, count));
    }
  });

  it("is read again where it is of events that are only outlines", () => {
    const light = events.map((event) => ({ ...event, isLight: true }));
    expect(new ReplayState().after(light, 4).steps.get("tick#1")?.isLight).toBe(true);
    expect(new ReplayState().after(events, 4).steps.get("tick#1")?.isLight).toBeUndefined();
  });
});

describe("a search of events", () => {
  it("finds them by kind, step and place, up to where one looks", () => {
    const search = new Search();
    expect(search.among(events, 60, "tick#29")).toEqual([58, 59]);
    expect(search.among(events, 10, "started")).toEqual([0, 2, 4, 6, 8]);
    expect(search.among(events, 5, "started")).toEqual([0, 2, 4]);
    expect(search.among(events, 14, "started")).toEqual([0, 2, 4, 6, 8, 10, 12]);
    expect(search.among(events, 60, "1.17 ")).toEqual([17]);
    expect(search.among(events, 60, "nothing")).toEqual([]);
  });
});
