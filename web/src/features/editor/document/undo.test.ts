/** For any sequence of edits, each undo restores the exact previous document and each redo the next one. */

import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { edgeNames } from "@/graph/model/edgeNames";
import { randomOf, workflowOf } from "@/testing/graphs";
import { pasteOperations, pieceOf } from "./clipboard";
import { makeDraft } from "./draft";
import { addNode, insertOnEdge, moveNodes, removeElements } from "./edits";
import type { Operation } from "./operations";

const SEEDS = 12;
const ACTS = 25;

type Random = (below: number) => number;

/** A random user action: by pointer, form, text, clipboard, tidying or assistant. */
function anAct(now: Definition, random: Random, nth: number): Operation[] {
  const node = now.nodes[random(Math.max(1, now.nodes.length))]?.id;
  const edge = edgeNames(now.edges)[random(Math.max(1, now.edges.length))];
  const places = new Map(now.nodes.map((one, at) => [one.id, { x: at * 10, y: nth }]));
  if (node === undefined) return addNode(now, places, { type: "agent" }).changes;
  const acts: (() => Operation[])[] = [
    () => addNode(now, places, { type: "agent", after: node }).changes,
    () => (edge ? addNode(now, places, { type: "tool", on: edge }).changes : []),
    () => removeElements(now, { nodes: [node], edges: edge ? [edge] : [] }),
    () => moveNodes(now, places, new Map([[node, { x: nth * 7, y: nth * 3 }]])),
    () => moveNodes(now, places, new Map(now.nodes.map((one, at) => [one.id, { x: at * 90, y: nth * 50 }]))),
    () => pasteOperations(now, places, pieceOf(now, [node], places)).changes,
    () => [{ op: "change_node", node, set: { "/config/prompt": `words ${nth}`, "/name": `N${nth}` } }],
    () => [{ op: "change_workflow", set: { "/description": `words ${nth}` } }],
    () => [{ op: "rename_node", node, to: `renamed_${nth}` }],
    () => (edge ? [{ op: "change_edge", edge, set: { "/label": `way ${nth}` } }] : []),
    () => (edge ? insertOnEdge(now, edge, node) : []),
    () => [{ op: "order_nodes", nodes: [...now.nodes].reverse().map((one) => one.id) }],
    () => [{ op: "replace_text", text: `${nth}`, reads: workflowOf(random, 4) }],
  ];
  return acts[random(acts.length)]?.() ?? [];
}

test("each undo restores the exact previous document, each redo the next one", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = randomOf(seed);
    const store = makeDraft(workflowOf(random, 6));
    const stood = [JSON.stringify(store.getState().shown)];
    for (let nth = 1; nth <= ACTS; nth++) {
      store.getState().act(...anAct(store.getState().shown, random, nth));
      if (store.getState().done.length === stood.length) stood.push(JSON.stringify(store.getState().shown));
    }
    expect(stood.length, `seed ${seed} does something`).toBeGreaterThan(ACTS / 2);
    const last = stood.length - 1;
    for (let at = last; at > 0; at--) {
      store.getState().undo();
      expect(JSON.stringify(store.getState().shown), `seed ${seed}, back to ${at - 1}`).toBe(stood[at - 1]);
    }
    for (let at = 1; at <= last; at++) {
      store.getState().redo();
      expect(JSON.stringify(store.getState().shown), `seed ${seed}, on to ${at}`).toBe(stood[at]);
    }
  }
});

test("only what is typed beside the canvas may be drawn later", () => {
  const draft = makeDraft(workflowOf(randomOf(1), 3));
  const name = (words: string) => ({ op: "change_workflow" as const, set: { "/name": words } });
  const isTyping = () => draft.getState().isTyping;
  draft.getState().type(name("a"));
  expect(isTyping()).toBe(true);
  draft.getState().act(name("b"));
  expect(isTyping()).toBe(false);
  draft.getState().type(name("c"));
  draft.getState().undo();
  expect(isTyping()).toBe(false);
  draft.getState().redo();
  draft.getState().type(name("d"), "canvas");
  expect(isTyping()).toBe(false);
});
