import { describe, expect, it } from "vitest";
import { changed, numberIn } from "./agentFields";

describe("settings of an agent", () => {
  it("accept a change at any depth and keep the rest", () => {
    expect(changed({ system: "x" }, ["memory", "window"], 5)).toEqual({ system: "x", memory: { window: 5 } });
    expect(changed({ memory: { scope: "session" } }, ["memory", "window"], 5)).toEqual({
      memory: { scope: "session", window: 5 },
    });
  });

  it("lose empty fields and the objects that become empty", () => {
    expect(changed({ system: "x", memory: { window: 5 } }, ["memory", "window"], undefined)).toEqual({ system: "x" });
    expect(changed({ memory: { window: 5, scope: "none" } }, ["memory", "window"], undefined)).toEqual({
      memory: { scope: "none" },
    });
    expect(changed({ system: "x" }, ["model"], undefined)).toEqual({ system: "x" });
  });

  it("keep false and zero", () => {
    expect(changed({}, ["temperature"], 0)).toEqual({ temperature: 0 });
    expect(changed({}, ["memory", "summarize"], false)).toEqual({ memory: { summarize: false } });
    expect(numberIn("0")).toBe(0);
    expect(numberIn("  ")).toBeUndefined();
    expect(numberIn("warm")).toBeUndefined();
  });
});
