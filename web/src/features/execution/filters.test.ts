import { describe, expect, it } from "vitest";
import { filterOf, withoutEmpty } from "./filters";

describe("filters of executions", () => {
  it("converts the address to the server's filter, with days in local time", () => {
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

  it("ignores unknown values", () => {
    expect(filterOf({ status: ["asleep"], since: "yesterday", until: "2026-1-1" })).toEqual({});
    expect(filterOf({ order: "asc" })).toEqual({ order: "asc" });
    expect(filterOf({ order: "asc", q: "tides" })).toEqual({ q: "tides" });
  });

  it("leaves empty filters out of the address", () => {
    expect(withoutEmpty({ workflow: "", status: [], q: undefined, order: "asc" })).toEqual({ order: "asc" });
  });
});
