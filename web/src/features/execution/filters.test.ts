import { describe, expect, it } from "vitest";
import { filterOf, narrowed } from "./filters";

describe("what executions are narrowed by", () => {
  it("is asked as the address says, days as they are here", () => {
    expect(filterOf({ workflow: "letter", status: ["failed", "waiting"], q: "tides", trials: true })).toEqual({
      workflow: "letter",
      status: ["waiting", "failed"],
      q: "tides",
      trials: "true",
    });
    const { since, until } = filterOf({ since: "2026-03-01", until: "2026-03-01" });
    expect(since).toBe(new Date(2026, 2, 1).getTime() / 1000);
    expect(until).toBe(new Date(2026, 2, 2).getTime() / 1000);
  });

  it("leaves out what nobody means", () => {
    expect(filterOf({ status: ["asleep"], since: "yesterday", until: "2026-1-1" })).toEqual({});
    expect(filterOf({ order: "asc" })).toEqual({ order: "asc" });
    expect(filterOf({ order: "asc", q: "tides" })).toEqual({ q: "tides" });
  });

  it("is not in the address where it narrows nothing", () => {
    expect(narrowed({ workflow: "", status: [], q: undefined, order: "asc" })).toEqual({ order: "asc" });
  });
});
