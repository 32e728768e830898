import { describe, expect, it } from "vitest";
import { brief, changesIn, pathText, valueAt } from "./changes";

describe("differences between two values", () => {
  it("are reported at the deepest path, with before and after", () => {
    const before = { a: 1, b: { c: [1, 2], gone: true }, same: { x: [] } };
    const after = { a: 1, b: { c: [1, 3, 4] }, same: { x: [] }, fresh: null };
    expect(changesIn(before, after)).toEqual([
      { path: ["b", "c", 1], before: 2, after: 3 },
      { path: ["b", "c", 2], before: undefined, after: 4 },
      { path: ["b", "gone"], before: true, after: undefined },
      { path: ["fresh"], before: undefined, after: null },
    ]);
  });

  it("cover the whole value if the types differ", () => {
    expect(changesIn({ a: [1] }, { a: { 0: 1 } })).toEqual([{ path: ["a"], before: [1], after: { 0: 1 } }]);
    expect(changesIn("x", "x")).toEqual([]);
  });

  it("have paths in expression syntax that resolve to the values", () => {
    expect(pathText(["letter", "lines", 0, "odd name"])).toBe('letter.lines[0]["odd name"]');
    expect(valueAt({ letter: { lines: [{ "odd name": 7 }] } }, ["letter", "lines", 0, "odd name"])).toBe(7);
    expect(valueAt({ letter: null }, ["letter", "lines"])).toBeUndefined();
    expect(brief("x".repeat(100), 5)).toBe("xxxxx…");
  });
});
