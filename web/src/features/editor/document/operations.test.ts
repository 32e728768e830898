import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { makeDraft } from "./draft";
import { applied, askedOf, type Operation } from "./operations";

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

test("a renamed node is renamed wherever it is named", () => {
  const now = applied(TWO, { op: "rename_node", node: "a", to: "first-one" });
  expect(now.nodes.map((one) => one.id)).toEqual(["first-one", "b"]);
  expect(now.nodes[1]?.config?.prompt).toBe('Of {nodes["first-one"].text}, not {nodes.ab}');
  expect(now.edges[0]).toMatchObject({ source: "first-one", condition: { expression: 'nodes["first-one"].ok' } });
  expect(now.edges[1]?.target).toBe("first-one");
});

test("edges are asked in another order, and those that are not named follow", () => {
  const now = applied(TWO, { op: "order_edges", edges: ["b->a"] });
  expect(now.edges.map((one) => one.source)).toEqual(["b", "a"]);
});

test("what was typed last is the document that later changes are applied to", () => {
  const reads: Definition = { id: "two", nodes: [], edges: [] };
  const add: Operation = { op: "add_node", node: { id: "c", type: "end" } };
  const before: Operation[][] = [[{ op: "remove_node", node: "a" }]];
  expect(askedOf(before)).toEqual({ operations: before.flat() });
  const typed: Operation = { op: "replace_text", text: "id: two", reads };
  expect(askedOf([...before, [typed], [add]])).toEqual({ text: "id: two", operations: [add] });
});

test("keys typed one after another are one undo, and undoing them shows what was drawn before", () => {
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

test("a field that is filled and emptied again is no change, and one that was there is taken out", () => {
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
