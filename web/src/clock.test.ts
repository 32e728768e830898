import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hearTime, now } from "./clock";

const DAY = 86_400;
const AT = Date.parse("2026-03-01T12:00:00.400Z") / 1000;

/** An answer of a server whose clock is so far ahead of this machine's, half of the way there and back. */
function answer(ahead: number, at = AT, took = 0.2): void {
  hearTime(new Date((at + took / 2 + ahead) * 1000).toUTCString(), at, at + took);
}

describe("what time it is", () => {
  beforeEach(() => vi.useFakeTimers({ now: AT * 1000 }));
  afterEach(() => {
    answer(0);
    vi.useRealTimers();
  });

  it("is the machine's own, as long as it may be right", () => {
    for (const at of [AT, AT + 0.3, AT + 0.5, AT + 7.9]) answer(0, at);
    expect(now()).toBe(AT);
    hearTime(null, AT, AT);
    hearTime("soon", AT, AT);
    expect(now()).toBe(AT);
  });

  it("is the server's where the machine's is wrong, the closer the more was answered", () => {
    for (const ahead of [DAY, -DAY, 90.25]) {
      answer(ahead);
      expect(Math.abs(now() - AT - ahead)).toBeLessThan(0.7);
      for (let part = 0; part < 20; part++) answer(ahead, AT + part * 1.05);
      expect(Math.abs(now() - AT - ahead)).toBeLessThan(0.2);
    }
  });

  it("is right again once the clock is set", () => {
    answer(DAY);
    answer(0);
    expect(now()).toBe(AT);
  });
});
