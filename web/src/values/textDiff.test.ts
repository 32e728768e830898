import { expect, it } from "vitest";
import { type Hunk, textDiff } from "./textDiff";

const rebuilt = (hunks: readonly Hunk[], side: "before" | "after") =>
  hunks
    .flatMap((hunk) =>
      "same" in hunk ? hunk.same : hunk[side].length > 0 ? [hunk[side].map((one) => one.text).join("")] : [],
    )
    .join("\n");

it("marks the words that changed in a line", () => {
  expect(textDiff("one\nthe red house\nend", "one\nthe blue house\nend")).toEqual([
    { same: ["one"] },
    {
      before: [
        { kind: "same", text: "the " },
        { kind: "removed", text: "red" },
        { kind: "same", text: " house" },
      ],
      after: [
        { kind: "same", text: "the " },
        { kind: "added", text: "blue" },
        { kind: "same", text: " house" },
      ],
    },
    { same: ["end"] },
  ]);
});

it("lists added and removed lines", () => {
  expect(textDiff("a\nb", "a\nx\nb")).toEqual([
    { same: ["a"] },
    { before: [], after: [{ kind: "added", text: "x" }] },
    { same: ["b"] },
  ]);
  expect(textDiff("a\nb\nc", "a\nc")[1]).toEqual({ before: [{ kind: "removed", text: "b" }], after: [] });
});

it("contains both texts completely, also where they are too long to compare", () => {
  const long = (word: string) => Array.from({ length: 3000 }, (_, at) => `${word} ${at}`).join("\n");
  for (const [before, after] of [
    ["", "a"],
    ["a b c\nd", "a c\nd e\nf"],
    ["x\ny\nz", "z\ny\nx"],
    [long("old"), long("new")],
  ] as const) {
    const hunks = textDiff(before, after);
    expect(rebuilt(hunks, "before")).toBe(before);
    expect(rebuilt(hunks, "after")).toBe(after);
  }
});
