import { describe, expect, it } from "vitest";
import { type ProviderKey, part, shares } from "./keys";

const key = (mostToday: ProviderKey["mostToday"]) =>
  ({ today: { calls: 9, tokens: 50, costUsd: 1 }, mostToday }) as unknown as ProviderKey;

describe("daily limits of a key", () => {
  it("are ordered by the used share", () => {
    const found = shares(key({ calls: 10, tokens: 100, costUsd: null }));
    expect(found.map((one) => one.measure)).toEqual(["calls", "tokens"]);
    expect(shares(key(null))).toEqual([]);
  });
  it("count as used up if they are zero", () => {
    expect(part({ used: 0, most: 0 })).toBe(1);
    expect(part({ used: 1, most: 4 })).toBe(0.25);
  });
});
