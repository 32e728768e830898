import { describe, expect, it } from "vitest";
import { ROWS_MAX, rowsOf } from "./tree";

const VALUE = { letter: { title: "Tides", lines: ["one", "two"] }, goal: "sea", empty: {} };

describe("a value as a tree", () => {
  it("shows what is open", () => {
    const { rows } = rowsOf(VALUE, (_, depth) => depth === 0);
    expect(rows.map((row) => [row.text, row.isOpen])).toEqual([
      ["letter", true],
      ["letter.title", undefined],
      ["letter.lines", false],
      ["goal", undefined],
      ["empty", undefined],
    ]);
  });

  it("shows what is looked for, with the way to it", () => {
    const { rows } = rowsOf(VALUE, () => false, "TWO");
    expect(rows.map((row) => row.text)).toEqual(["letter", "letter.lines", "letter.lines[1]"]);
    expect(rowsOf(VALUE, () => false, "nowhere").rows).toEqual([]);
  });

  it("says where it stops", () => {
    const { rows, isCut } = rowsOf(
      Array.from({ length: 10_000 }, (_, at) => at),
      () => true,
    );
    expect([rows.length, isCut]).toEqual([ROWS_MAX, true]);
  });
});
