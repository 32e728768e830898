import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { makeDraft } from "./draft";
import { applyOperation, editRequest, type Operation } from "./operations";

const TWO: Definition = {
  id: "two",
  nodes: [
    { id: "a", type: "agent", config: { prompt: "x" } },
    { id: "b", type: "agent", config: { prompt: "Of {nodes.a.text}, not {nodes.ab}" } },
  ],
  edges: [
    { source: "a", target: "b", condition: { type: "expression", expression: 'nodes["a"].ok' } },
    { source: "b", target: "a" },
  ],
};

test("renaming a node updates its references", () => {
  const now = applyOperation(TWO, { op: "rename_node", node: "a", to: "first-one" });
  expect(now.nodes.map((one) => one.id)).toEqual(["first-one", "b"]);
  expect(now.nodes[1]?.config?.prompt).toBe('Of {nodes["first-one"].text}, not {nodes.ab}');
  expect(now.edges[0]).toMatchObject({ source: "first-one", condition: { expression: 'nodes["first-one"].ok' } });
  expect(now.edges[1]?.target).toBe("first-one");
});

test("reordering puts the named edges first and the others behind", () => {
  const now = applyOperation(TWO, { op: "order_edges", edges: ["b->a"] });
  expect(now.edges.map((one) => one.source)).toEqual(["b", "a"]);
});

test("operations after a typed text apply to that text", () => {
  const reads: Definition = { id: "two", nodes: [], edges: [] };
  const add: Operation = { op: "add_node", node: { id: "c", type: "end" } };
  const before: Operation[][] = [[{ op: "remove_node", node: "a" }]];
  expect(editRequest(before)).toEqual({ operations: before.flat() });
  const typed: Operation = { op: "replace_text", text: "id: two", reads };
  expect(editRequest([...before, [typed], [add]])).toEqual({ text: "id: two", operations: [add] });
});

test("consecutive typing is one undo step and restores the definition before it", () => {
  const store = makeDraft(TWO);
  store.getState().act({ op: "remove_node", node: "b" });
  const drawn = store.getState().shown;
  store.getState().type({ op: "replace_text", text: "one", reads: { id: "two", nodes: [], edges: [] } });
  store.getState().type({ op: "replace_text", text: "two", reads: TWO });
  expect(store.getState().done).toHaveLength(2);
  expect(store.getState().shown).toEqual(TWO);
  store.getState().undo();
  expect(store.getState().shown).toEqual(drawn);
});

test("filling and emptying a new field has no effect, and emptying an existing field removes it", () => {
  const store = makeDraft(TWO);
  const { type, act } = store.getState();
  type({ op: "change_node", node: "a", remove: ["/outputs"] });
  expect(store.getState().done).toEqual([]);
  type({ op: "change_node", node: "a", set: { "/name": "M" } });
  type({ op: "change_node", node: "a", set: { "/name": "My" } });
  expect(store.getState().done).toHaveLength(1);
  type({ op: "change_node", node: "a", remove: ["/name"] });
  expect(store.getState()).toMatchObject({ done: [], shown: TWO });
  type({ op: "change_node", node: "a", set: { "/config/prompt": "y" } });
  type({ op: "change_node", node: "a", remove: ["/config/prompt"] });
  expect(store.getState().done).toEqual([[{ op: "change_node", node: "a", remove: ["/config/prompt"] }]]);
  expect(store.getState().shown.nodes[0]).toEqual({ id: "a", type: "agent", config: {} });
  act({ op: "change_edge", edge: "b->a", remove: ["/condition"] }, { op: "change_workflow", remove: ["/input"] });
  expect(store.getState().done).toHaveLength(1);
  store.getState().undo();
  expect(store.getState().shown).toEqual(TWO);
});
