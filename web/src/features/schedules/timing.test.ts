import { describe, expect, it } from "vitest";
import { amountOf, draftOf, newDraft, onClocks, timingOf } from "./timing";

describe("timing", () => {
  it("is unchanged after a round trip through the form", () => {
    for (const one of [
      { cron: "0 8 * * 1-5", every: null, at: null, timezone: "Europe/Berlin" },
      { cron: null, every: 5400, at: null, timezone: "UTC" },
      { cron: null, every: null, at: 1_800_000_060, timezone: "UTC" },
    ]) {
      const { timezone, ...rest } = one;
      const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
      expect(timingOf(draftOf(one))).toEqual(one.cron ? { ...given, timezone } : given);
    }
  });

  it("is expressed in the largest possible unit", () => {
    expect(amountOf(86_400)).toEqual({ amount: "1", unit: "days" });
    expect(amountOf(5400)).toEqual({ amount: "90", unit: "minutes" });
    expect(amountOf(2.5)).toEqual({ amount: "2.5", unit: "seconds" });
  });

  it("is null while the form is incomplete", () => {
    const draft = newDraft();
    expect(timingOf({ ...draft, cron: " " })).toBeNull();
    expect(timingOf({ ...draft, timezone: "" })).toBeNull();
    expect(timingOf({ ...draft, kind: "every", amount: "0" })).toBeNull();
    expect(timingOf({ ...draft, kind: "every", amount: "often" })).toBeNull();
    expect(timingOf({ ...draft, kind: "at", at: "" })).toBeNull();
  });

  it("is shown in a time zone", () => {
    expect(onClocks(1_795_420_800, "Europe/Berlin", "en-GB")).toContain("09:00");
    expect(onClocks(1_795_420_800, "UTC", "en-GB")).toContain("08:00");
  });
});
