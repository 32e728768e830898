import { describe, expect, it } from "vitest";
import { keysFor, nextOf } from "./listKeys";

describe("keys of the inbox", () => {
  it("assigns one key to each action and reserves the navigation keys", () => {
    expect([...keysFor(["approve", "again", "reject", "j"])]).toEqual([
      ["a", "approve"],
      ["g", "again"],
      ["r", "reject"],
      ["4", "j"],
    ]);
  });

  it("navigate within the list", () => {
    const gates = [{ cursor: "1" }, { cursor: "2" }, { cursor: "3" }];
    expect(nextOf(gates, "1", 1)).toBe("2");
    expect(nextOf(gates, "3", 1)).toBe("2");
    expect(nextOf([{ cursor: "1" }], "1", 1)).toBe("1");
    expect(nextOf([], null, 1)).toBeNull();
  });
});
