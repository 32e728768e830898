import { describe, expect, it } from "vitest";
import type { Definition } from "@/api/views";
import { type Piece, pasteOperations, pieceOf, pieceText, readPiece } from "./clipboard";
import { addNode, insertOnEdge, moveNodes, reconnectEdge, removeElements } from "./edits";
import { applyOperation } from "./operations";

const WORKFLOW: Definition = {
  id: "w",
  nodes: [
    { id: "a", type: "agent", position: { x: 0, y: 0 }, config: { prompt: "{nodes.b.text} and {nodes.bb.text}" } },
    { id: "b", type: "parallel", position: { x: 300, y: 0 }, config: { branches: ["a"] } },
    { id: "c", type: "agent", position: { x: 600, y: 0 } },
  ],
  edges: [
    { source: "a", target: "b", condition: { type: "label", label: "go" } },
    { id: "named", source: "b", target: "c" },
    { source: "c", target: "a" },
  ],
};
const changed = (changes: Parameters<typeof applyOperation>[1][], definition = WORKFLOW) =>
  changes.reduce(applyOperation, definition);
const lines = (definition: Definition) => definition.edges.map((edge) => `${edge.source}>${edge.target}`);

describe("the clipboard", () => {
  it("copies nodes and the edges between them", () => {
    const piece = pieceOf(WORKFLOW, ["a", "b"], new Map());
    expect(piece.nodes.map((node) => node.id)).toEqual(["a", "b"]);
    expect(piece.edges).toEqual([WORKFLOW.edges[0]]);
    expect(readPiece(pieceText(piece))).toEqual(piece);
  });

  it("replaces ids in use, also in references within the piece", () => {
    const { ids, changes } = pasteOperations(WORKFLOW, new Map(), pieceOf(WORKFLOW, ["a", "b", "c"], new Map()));
    expect(ids).toEqual(["a_2", "b_2", "c_2"]);
    const next = changed(changes);
    expect(next.nodes[3]).toEqual({
      id: "a_2",
      type: "agent",
      position: { x: 40, y: 40 },
      config: { prompt: "{nodes.b_2.text} and {nodes.bb.text}" },
    });
    expect(next.nodes[4]?.config).toEqual({ branches: ["a_2"] });
    expect(lines(next).slice(3)).toEqual(["a_2>b_2", "b_2>c_2", "c_2>a_2"]);
    expect(next.edges[3]?.condition).toEqual({ type: "label", label: "go" });
    expect(next.edges[4]?.id, "edge ids are unique").toBeUndefined();
  });

  it("keeps unused ids and pastes at the given position", () => {
    const { ids, changes } = pasteOperations(
      { id: "other", nodes: [], edges: [] },
      new Map(),
      pieceOf(WORKFLOW, ["a", "b"], new Map()),
      { x: 1000, y: 50 },
    );
    expect(ids).toEqual(["a", "b"]);
    const next = changed(changes, { id: "other", nodes: [], edges: [] });
    expect(next.nodes.map((node) => node.position)).toEqual([
      { x: 850, y: 50 },
      { x: 1150, y: 50 },
    ]);
  });

  it("rejects other clipboard content with specific reasons", () => {
    const text = (piece: unknown) => JSON.stringify({ "pointsman-clipboard": 1, ...(piece as Piece) });
    expect(readPiece("Dear Sir or Madam")).toBe("foreign");
    expect(readPiece('{"nodes": []}')).toBe("foreign");
    expect(readPiece('"pointsman-clipboard"')).toBe("foreign");
    expect(readPiece('{"pointsman-clipboard": 1,')).toBe("damaged");
    expect(readPiece(text({ nodes: "all", edges: [] }))).toBe("damaged");
    expect(readPiece(text({ nodes: [], edges: [] }))).toBe("damaged");
    expect(readPiece(text({ nodes: [null], edges: [] }))).toBe("damaged");
    expect(readPiece(text({ nodes: [{ id: "x", type: 7 }], edges: [] }))).toBe("damaged");
    expect(readPiece(text({ nodes: [{ id: "x", type: "agent", position: { x: null, y: 1 } }], edges: [] }))).toBe(
      "damaged",
    );
    expect(
      readPiece(
        text({
          nodes: [
            { id: "x", type: "note" },
            { id: "x", type: "note" },
          ],
          edges: [],
        }),
      ),
    ).toBe("damaged");
    expect(readPiece(text({ nodes: [{ id: "x", type: "note" }], edges: [{ source: "x", target: "y" }] }))).toBe(
      "damaged",
    );
    const many = Array.from({ length: 1001 }, (_, at) => ({ id: `n${at}`, type: "note" }));
    expect(readPiece(text({ nodes: many, edges: [] }))).toBe("tooLarge");
    expect(readPiece(" ".repeat(4_000_001))).toBe("tooLarge");
  });
});

describe("canvas edits", () => {
  it("insert a node into an edge, which keeps its condition", () => {
    const { id, changes } = addNode(WORKFLOW, new Map(), { type: "tool", on: "a->b" });
    const next = changed(changes);
    expect(id).toBe("tool");
    expect(lines(next)).toEqual(["a>tool", "b>c", "c>a", "tool>b"]);
    expect(next.edges[0]?.condition).toEqual({ type: "label", label: "go" });
    expect(insertOnEdge(WORKFLOW, "a->b", "a"), "not a node on its own edge").toEqual([]);
  });

  it("remove nodes with their edges", () => {
    const next = changed(removeElements(WORKFLOW, { nodes: ["a"], edges: ["named", "a->b"] }));
    expect(next.nodes.map((node) => node.id)).toEqual(["b", "c"]);
    expect(next.edges).toEqual([]);
  });

  it("reconnect an edge without changing its other fields", () => {
    const next = changed(reconnectEdge(WORKFLOW, "a->b", { source: "a", target: "c" }));
    expect(next.edges[0]).toEqual({ source: "a", target: "c", condition: { type: "label", label: "go" } });
    expect(reconnectEdge(WORKFLOW, "a->b", { source: "a", target: "b" })).toEqual([]);
  });

  it("store all positions once one box is moved", () => {
    const bare = { ...WORKFLOW, nodes: WORKFLOW.nodes.map(({ position: _, ...node }) => node) };
    const places = new Map(WORKFLOW.nodes.map((node) => [node.id, node.position as { x: number; y: number }]));
    const next = changed(moveNodes(bare, places, new Map([["a", { x: 10.4, y: 9.6 }]])), bare);
    expect(next.nodes.map((node) => node.position)).toEqual([
      { x: 10, y: 10 },
      { x: 300, y: 0 },
      { x: 600, y: 0 },
    ]);
    expect(moveNodes(WORKFLOW, places, new Map([["a", { x: 0.2, y: 0 }]]))).toEqual([]);
  });
});
