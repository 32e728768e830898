import { describe, expect, it } from "vitest";
import { ROWS_MAX, rowsOf } from "./tree";

const VALUE = { letter: { title: "Tides", lines: ["one", "two"] }, goal: "sea", empty: {} };

describe("tree of a value", () => {
  it("shows open branches", () => {
    const { rows } = rowsOf(VALUE, (_, depth) => depth === 0);
    expect(rows.map((row) => [row.text, row.isOpen])).toEqual([
      ["letter", true],
      ["letter.title", undefined],
      ["letter.lines", false],
      ["goal", undefined],
      ["empty", undefined],
    ]);
  });

  it("shows matches with their ancestors", () => {
    const { rows } = rowsOf(VALUE, () => false, "TWO");
    expect(rows.map((row) => row.text)).toEqual(["letter", "letter.lines", "letter.lines[1]"]);
    expect(rowsOf(VALUE, () => false, "nowhere").rows).toEqual([]);
  });

  it("reports where it is cut", () => {
    const { rows, isCut } = rowsOf(
      Array.from({ length: 10_000 }, (_, at) => at),
      () => true,
    );
    expect([rows.length, isCut]).toEqual([ROWS_MAX, true]);
  });
});
