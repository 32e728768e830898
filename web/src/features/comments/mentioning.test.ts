import { describe, expect, it } from "vitest";
import { begunMention, completeMention } from "./mentioning";

describe("the mention before the caret", () => {
  it.each([
    ["@", ""],
    ["Look @be", "be"],
    ["(@ben.k", "ben.k"],
    ["Look @ben ", null],
    ["ben@example.com", null],
    ["a/@ben", null],
    ["", null],
  ])("of %j is %j", (text, begun) => {
    expect(begunMention(text, text.length)).toBe(begun);
  });

  it("does not reach behind the caret", () => {
    expect(begunMention("@ben look", 3)).toBe("be");
  });

  it("is replaced by the chosen name", () => {
    expect(completeMention("Look @be", 8, "ben")).toEqual({ text: "Look @ben ", caret: 10 });
    expect(completeMention("@b please", 2, "ben")).toEqual({ text: "@ben please", caret: 5 });
  });
});
