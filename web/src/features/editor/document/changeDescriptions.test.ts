import { describe, expect, it } from "vitest";
import type { Definition } from "@/api/views";
import { describeChange } from "./changeDescriptions";
import { addNode, moveNodes, removeElements } from "./edits";
import type { Operation } from "./operations";

const DRAWN = {
  nodes: [
    { id: "start", type: "start" },
    { id: "ask", type: "agent", name: { en: "Ask", de: "Fragen" }, position: { x: 300, y: 0 } },
    { id: "end", type: "end" },
  ],
  edges: [
    { source: "start", target: "ask" },
    { source: "ask", target: "end" },
  ],
} as unknown as Definition;
const PLACES = new Map([
  ["start", { x: 0, y: 0.4 }],
  ["ask", { x: 300, y: 0 }],
  ["end", { x: 600, y: 0 }],
]);

const described = (...changes: Operation[]) => describeChange(DRAWN, changes, PLACES, "de");

describe("descriptions of changes", () => {
  it("name an added node and its predecessor, also on an edge", () => {
    const after = addNode(DRAWN, PLACES, { type: "agent", after: "ask" });
    expect(described(...after.changes)).toEqual({ word: "addedAfter", values: { name: "agent", after: "Fragen" } });
    const on = addNode(DRAWN, PLACES, { type: "human", on: "start->ask" });
    expect(described(...on.changes)).toEqual({ word: "addedAfter", values: { name: "human", after: "start" } });
    const alone = addNode(DRAWN, PLACES, { type: "note", at: { x: 0, y: 200 } });
    expect(described(...alone.changes)).toEqual({ word: "added_one", values: { name: "note" } });
  });

  it("count several elements", () => {
    const gone = removeElements(DRAWN, { nodes: ["start", "ask"], edges: [] });
    expect(described(...gone)).toEqual({ word: "removed_other", values: { count: 2 } });
    const cut = removeElements(DRAWN, { nodes: [], edges: ["start->ask", "ask->end"] });
    expect(described(...cut)).toEqual({ word: "disconnected_other", values: { count: 2 } });
  });

  it("give the new position of a moved box and ignore boxes that did not move", () => {
    const move = moveNodes(DRAWN, PLACES, new Map([["ask", { x: 310, y: 20 }]]));
    expect(move).toHaveLength(3);
    expect(described(...move)).toEqual({ word: "moved_one", values: { name: "Fragen", x: 310, y: 20 } });
  });

  it("name both ends of an added, reconnected or removed edge", () => {
    const ends = { from: "Fragen", to: "start" };
    expect(described({ op: "connect", edge: { source: "ask", target: "start" } })).toEqual({
      word: "connected",
      values: ends,
    });
    expect(described({ op: "change_edge", edge: "ask->end", set: { "/target": "start" } })).toEqual({
      word: "turned",
      values: ends,
    });
    expect(described({ op: "disconnect", edge: "ask->end" })?.values).toEqual({ from: "Fragen", to: "end" });
  });

  it("omit typed text", () => {
    expect(described({ op: "change_node", node: "ask", set: { "/config/prompt": "Why?" } })).toBeNull();
    expect(described({ op: "change_edge", edge: "ask->end", set: { "/label": "yes" } })).toBeNull();
  });
});
