import { describe, expect, it } from "vitest";
import type { Definition } from "@/api/views";
import { describeChange } from "./changeDescriptions";
import { added, moved, removed } from "./edits";
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

const told = (...changes: Operation[]) => describeChange(DRAWN, changes, PLACES, "de");

describe("what is told of a deed", () => {
  it("names what was added and what leads to it, also on a connection", () => {
    const after = added(DRAWN, PLACES, { type: "agent", after: "ask" });
    expect(told(...after.changes)).toEqual({ word: "addedAfter", values: { name: "agent", after: "Fragen" } });
    const on = added(DRAWN, PLACES, { type: "human", on: "start->ask" });
    expect(told(...on.changes)).toEqual({ word: "addedAfter", values: { name: "human", after: "start" } });
    const alone = added(DRAWN, PLACES, { type: "note", at: { x: 0, y: 200 } });
    expect(told(...alone.changes)).toEqual({ word: "added_one", values: { name: "note" } });
  });

  it("counts where it was more than one", () => {
    const gone = removed(DRAWN, { nodes: ["start", "ask"], edges: [] });
    expect(told(...gone)).toEqual({ word: "removed_other", values: { count: 2 } });
    const cut = removed(DRAWN, { nodes: [], edges: ["start->ask", "ask->end"] });
    expect(told(...cut)).toEqual({ word: "disconnected_other", values: { count: 2 } });
  });

  it("says where a box came to rest, and nothing of those that stayed where they were seen", () => {
    const move = moved(DRAWN, PLACES, new Map([["ask", { x: 310, y: 20 }]]));
    expect(move).toHaveLength(3);
    expect(told(...move)).toEqual({ word: "moved_one", values: { name: "Fragen", x: 310, y: 20 } });
  });

  it("says from where to where a connection leads, led elsewhere, or no more", () => {
    const ends = { from: "Fragen", to: "start" };
    expect(told({ op: "connect", edge: { source: "ask", target: "start" } })).toEqual({
      word: "connected",
      values: ends,
    });
    expect(told({ op: "change_edge", edge: "ask->end", set: { "/target": "start" } })).toEqual({
      word: "turned",
      values: ends,
    });
    expect(told({ op: "disconnect", edge: "ask->end" })?.values).toEqual({ from: "Fragen", to: "end" });
  });

  it("is nothing where somebody types", () => {
    expect(told({ op: "change_node", node: "ask", set: { "/config/prompt": "Why?" } })).toBeNull();
    expect(told({ op: "change_edge", edge: "ask->end", set: { "/label": "yes" } })).toBeNull();
  });
});
