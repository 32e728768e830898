import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { changesBetween, fieldChanges, merged } from "./diff";

const BEFORE: Definition = {
  id: "letter",
  name: "Letter",
  nodes: [
    { id: "write", type: "agent", config: { prompt: "one", options: { temperature: 0 } }, position: { x: 0, y: 0 } },
    { id: "send", type: "tool" },
  ],
  edges: [{ source: "write", target: "send" }],
};

test("what came, went and says something else is told, with its places", () => {
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
  expect(changesBetween(BEFORE, after)[1]?.fields).toEqual([{ place: "config.prompt", before: "one", after: "two" }]);
});

test("a box that was moved, and keys in another order, are no difference", () => {
  const moved = {
    ...BEFORE,
    nodes: BEFORE.nodes.map((node) => ({ ...node, position: { x: 9, y: 9 } })),
  };
  expect(changesBetween(BEFORE, moved)).toEqual([]);
  expect(fieldChanges({ a: [{ b: 1, c: 2 }] }, { a: [{ c: 2, b: 1 }] })).toEqual([]);
  expect(fieldChanges({ a: null }, {})).toEqual([{ place: "a", before: null }]);
});

test("one picture has what went beside what is", () => {
  const after = { ...BEFORE, nodes: BEFORE.nodes.slice(0, 1), edges: [] };
  expect(merged(BEFORE, after).nodes.map((node) => node.id)).toEqual(["write", "send"]);
  expect(merged(BEFORE, after).edges).toHaveLength(1);
});
