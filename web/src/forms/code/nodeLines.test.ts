import { expect, test } from "vitest";
import { formatOf, linesOf } from "./nodeLines";
import { differenceOf } from "./useCodeMirror";

const YAML = `nodes:
  - {id: first, type: agent}
  - id: second
    type: agent
    config:
      prompt: x

  - type: end
    id: third
edges: []
`;

test("the lines of a node are found in YAML, in flow and block style", () => {
  expect(linesOf(YAML, "first")).toEqual([2, 2]);
  expect(linesOf(YAML, "second")).toEqual([3, 6]);
  expect(linesOf(YAML, "third")).toEqual([8, 9]);
  expect(linesOf(YAML, "sec")).toBeNull();
});

test("the lines of a node are found in JSON and in maps with node ids as keys", () => {
  const text = JSON.stringify({ nodes: [{ type: "a", id: "one", config: { x: 1 } }, { id: "two" }] }, null, 2);
  expect(linesOf(text, "one")).toEqual([3, 9]);
  expect(linesOf(text, "two")).toEqual([10, 12]);
  expect(linesOf("nodes:\n  plan:\n    type: step\n  write: {type: step}\n", "plan")).toEqual([2, 3]);
});

test("JSON and YAML are distinguished by the first character", () => {
  expect(formatOf("// note\n {}")).toBe("json");
  expect(formatOf("# note\nid: {}")).toBe("yaml");
});

test("the difference of two texts is one range", () => {
  expect(differenceOf("a: 1\nb: 2\n", "a: 1\nx: 3\nb: 2\n")).toEqual({ from: 5, to: 5, insert: "x: 3\n" });
  expect(differenceOf("same", "same")).toEqual({ from: 4, to: 4, insert: "" });
  expect(differenceOf("aaa", "aa")).toEqual({ from: 2, to: 3, insert: "" });
});
