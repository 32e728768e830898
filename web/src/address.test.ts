import { describe, expect, it } from "vitest";
import { daysOf, hasFilters, listOf, oneOf, parseSearch, searchTextOf } from "./address";

describe("query of an address", () => {
  const read = parseSearch((search) => ({
    ...searchTextOf(search),
    ...daysOf(search, "since"),
    ...listOf("tag", search.tag),
    ...oneOf("sort", search.sort, ["name", "saved"]),
  }));

  it("is empty for values that the page does not understand", () => {
    const told = read({ q: { a: 1 }, since: "never", tag: [{}, null, true], sort: "constructor", other: 1 });
    expect(Object.values(told).every((value) => value === undefined)).toBe(true);
    expect(Object.keys(told).sort()).toEqual(["other", "q", "since", "sort", "tag"]);
    expect(hasFilters(told)).toBe(false);
    expect(read({ since: "2026-99-99" })).toEqual({ since: undefined });
  });

  it("keeps numbers as text and limits lengths", () => {
    expect(read({ q: 7, since: "2026-03-01", tag: [1, "a"], sort: "saved" })).toEqual({
      q: "7",
      since: "2026-03-01",
      tag: ["1", "a"],
      sort: "saved",
    });
    expect(read({ tag: "x" })).toEqual({ tag: ["x"] });
    expect(read({ q: "a".repeat(5_000) }).q?.length).toBe(200);
  });
});
