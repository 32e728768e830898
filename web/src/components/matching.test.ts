import { describe, expect, it } from "vitest";
import { matching } from "./matching";

const find = (wanted: string, all: string[]) => matching(wanted, all, (one) => [one]);

describe("what is meant by a few letters", () => {
  it("begins so, else has a word that begins so, else has it inside, else has the letters in order", () => {
    expect(find("pa", ["Compare", "a parallel", "Parallel", "prompt a"])).toEqual([
      "Parallel",
      "a parallel",
      "Compare",
      "prompt a",
    ]);
  });

  it("is everything where nothing is wanted, and nothing where nothing fits", () => {
    expect(find(" ", ["b", "a"])).toEqual(["b", "a"]);
    expect(find("xyz", ["b", "a"])).toEqual([]);
    expect(find("abc", [`a${" lorem ipsum ".repeat(9)} b c`]), "letters scattered over a long text").toEqual([]);
  });
});
