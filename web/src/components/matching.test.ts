import { describe, expect, it } from "vitest";
import { bestMatches } from "./matching";

const find = (wanted: string, all: string[]) => bestMatches(wanted, all, (one) => [one]);

describe("search by a few letters", () => {
  it("ranks a prefix before the start of a word, a substring, and scattered letters", () => {
    expect(find("pa", ["Compare", "a parallel", "Parallel", "prompt a"])).toEqual([
      "Parallel",
      "a parallel",
      "Compare",
      "prompt a",
    ]);
  });

  it("returns everything for empty input and nothing without a match", () => {
    expect(find(" ", ["b", "a"])).toEqual(["b", "a"]);
    expect(find("xyz", ["b", "a"])).toEqual([]);
    expect(find("abc", [`a${" lorem ipsum ".repeat(9)} b c`]), "letters scattered over a long text").toEqual([]);
  });
});
