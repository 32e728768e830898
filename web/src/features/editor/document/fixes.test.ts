import { expect, test } from "vitest";
import type { Problem } from "@/api/http";
import type { Definition } from "@/api/views";
import { fixesOf, fixOf } from "./fixes";
import { applyOperation } from "./operations";
import { pickedAt } from "./pointers";

const FLOW: Definition = {
  id: "flow",
  nodes: [
    { id: "a", type: "agent", config: { tools: ["x", "y"] } },
    { id: "b", type: "agent" },
  ],
  edges: [
    { source: "a", target: "b" },
    { source: "a", target: "gone" },
    { source: "b", target: "lost" },
  ],
};

function problem(pointer: string, ...fix: object[]): Problem {
  return { code: "x", severity: "error", pointer, line: null, column: null, message: "", hint: "", fix };
}

test("a fix becomes an operation on the draft", () => {
  expect(fixOf(problem("/edges/1", { op: "remove", path: "/edges/1" }), FLOW)).toEqual([
    { op: "disconnect", edge: "a->gone" },
  ]);
  const name = { op: "replace", path: "/nodes/0/config/tools/1", value: "z" };
  expect(fixOf(problem("/nodes/0", name), FLOW)).toEqual([
    { op: "change_node", node: "a", set: { "/config/tools/1": "z" } },
  ]);
  const entry = { op: "add", path: "/entry", value: "a" };
  expect(fixOf(problem("", entry), FLOW)).toEqual([{ op: "change_workflow", set: { "/entry": "a" } }]);
});

test("an element added to a list is inserted before the existing one", () => {
  const fix = fixOf(problem("", { op: "add", path: "/nodes/0/config/tools/0", value: "w" }), FLOW) ?? [];
  expect(fix.reduce(applyOperation, FLOW).nodes[0]?.config?.tools).toEqual(["w", "x", "y"]);
});

test("all fixes apply in any order of problems", () => {
  const all = [1, 2].map((at) => problem(`/edges/${at}`, { op: "remove", path: `/edges/${at}` }));
  const left = fixesOf(all, FLOW).reduce(applyOperation, FLOW).edges;
  expect(left).toEqual([{ source: "a", target: "b" }]);
});

test("a fix that does not apply is ignored", () => {
  expect(fixOf(problem("/nodes/9", { op: "remove", path: "/nodes/9" }), FLOW)).toBeNull();
  expect(fixOf({ ...problem(""), fix: null }, FLOW)).toBeNull();
});

test("a pointer is resolved to a node by index or id, and to an edge", () => {
  expect(pickedAt("/nodes/1/config/prompt", FLOW)).toEqual({ kind: "node", id: "b" });
  expect(pickedAt("/nodes/b", FLOW)).toEqual({ kind: "node", id: "b" });
  expect(pickedAt("/edges/1/condition", FLOW)).toEqual({ kind: "edge", id: "a->gone" });
  expect(pickedAt("/output/x", FLOW)).toBeNull();
});
