import { describe, expect, it } from "vitest";
import { daysOf, listOf, oneOf, saysSomething, understood, wordsOf } from "./address";

describe("what an address says", () => {
  const read = understood((search) => ({
    ...wordsOf(search),
    ...daysOf(search, "since"),
    ...listOf("tag", search.tag),
    ...oneOf("sort", search.sort, ["name", "saved"]),
  }));

  it("is nothing where the page does not understand it", () => {
    const told = read({ q: { a: 1 }, since: "never", tag: [{}, null, true], sort: "constructor", other: 1 });
    expect(Object.values(told).every((value) => value === undefined)).toBe(true);
    expect(Object.keys(told).sort()).toEqual(["other", "q", "since", "sort", "tag"]);
    expect(saysSomething(told)).toBe(false);
    expect(read({ since: "2026-99-99" })).toEqual({ since: undefined });
  });

  it("is what it says, where numbers are texts, and as long as words are", () => {
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
