import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { now, updateServerTime } from "./clock";

const DAY = 86_400;
const AT = Date.parse("2026-03-01T12:00:00.400Z") / 1000;

/** A response of a server whose clock is this far ahead, with equal travel times in both directions. */
function answer(ahead: number, at = AT, took = 0.2): void {
  updateServerTime(new Date((at + took / 2 + ahead) * 1000).toUTCString(), at, at + took);
}

describe("server time", () => {
  beforeEach(() => vi.useFakeTimers({ now: AT * 1000 }));
  afterEach(() => {
    answer(0);
    vi.useRealTimers();
  });

  it("is the local time if that may be right", () => {
    for (const at of [AT, AT + 0.3, AT + 0.5, AT + 7.9]) answer(0, at);
    expect(now()).toBe(AT);
    updateServerTime(null, AT, AT);
    updateServerTime("soon", AT, AT);
    expect(now()).toBe(AT);
  });

  it("follows the server if the local clock is wrong, closer with each response", () => {
    for (const ahead of [DAY, -DAY, 90.25]) {
      answer(ahead);
      expect(Math.abs(now() - AT - ahead)).toBeLessThan(0.7);
      for (let part = 0; part < 20; part++) answer(ahead, AT + part * 1.05);
      expect(Math.abs(now() - AT - ahead)).toBeLessThan(0.2);
    }
  });

  it("is right again after a clock is set", () => {
    answer(DAY);
    answer(0);
    expect(now()).toBe(AT);
  });
});
