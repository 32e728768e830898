import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { changesBetween, fieldChanges, mergedDefinition } from "./diff";

const BEFORE: Definition = {
  id: "letter",
  name: "Letter",
  nodes: [
    { id: "write", type: "agent", config: { prompt: "one", options: { temperature: 0 } }, position: { x: 0, y: 0 } },
    { id: "send", type: "tool" },
  ],
  edges: [{ source: "write", target: "send" }],
};

test("lists added, removed and changed parts with the paths of the changes", () => {
  const after: Definition = {
    id: "letter",
    name: "A letter",
    nodes: [
      { id: "write", type: "agent", config: { prompt: "two", options: { temperature: 0 } } },
      { id: "review", type: "human" },
    ],
    edges: [{ source: "write", target: "review" }],
  };
  expect(changesBetween(BEFORE, after).map(({ kind, id, mark }) => `${kind} ${id} ${mark}`)).toEqual([
    "workflow letter changed",
    "node write changed",
    "node send removed",
    "node review added",
    "edge write->send removed",
    "edge write->review added",
  ]);
  expect(changesBetween(BEFORE, after)[1]?.fields).toEqual([{ path: "config.prompt", before: "one", after: "two" }]);
});

test("ignores node positions and the order of keys", () => {
  const moved = {
    ...BEFORE,
    nodes: BEFORE.nodes.map((node) => ({ ...node, position: { x: 9, y: 9 } })),
  };
  expect(changesBetween(BEFORE, moved)).toEqual([]);
  expect(fieldChanges({ a: [{ b: 1, c: 2 }] }, { a: [{ c: 2, b: 1 }] })).toEqual([]);
  expect(fieldChanges({ a: null }, {})).toEqual([{ path: "a", before: null }]);
});

test("merges two definitions into one that also has the removed nodes and edges", () => {
  const after = { ...BEFORE, nodes: BEFORE.nodes.slice(0, 1), edges: [] };
  expect(mergedDefinition(BEFORE, after).nodes.map((node) => node.id)).toEqual(["write", "send"]);
  expect(mergedDefinition(BEFORE, after).edges).toHaveLength(1);
});
