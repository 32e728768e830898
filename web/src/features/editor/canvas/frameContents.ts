/** Nodes that move with a frame. */
import type { NodePositionChange } from "@xyflow/react";
import { BOX, type Rect } from "@/graph/layout/geometry";
import { isInside } from "@/graph/layout/notes";
import type { FoldedBox } from "@/graph/render/FoldedNode";
import type { NoteNode } from "@/graph/render/StickyNote";
import type { BoxNode } from "@/graph/render/WorkflowNode";

export type PlacedNode = BoxNode | FoldedBox | NoteNode;

const rectOf = (node: PlacedNode): Rect => ({
  ...node.position,
  ...(node.type === "note" ? { width: node.data.note.width, height: node.data.note.height } : BOX),
});

/** The moved nodes, and what the frames among them contained before, moved alike. */
export function withFrameContents(moved: readonly PlacedNode[], before: readonly PlacedNode[]): PlacedNode[] {
  const found = new Map(moved.map((one) => [one.id, one]));
  const known = new Map(before.map((one) => [one.id, one]));
  for (const frame of moved) {
    const was = known.get(frame.id);
    if (was?.type !== "note" || !was.data.note.isFrame) continue;
    const by = { x: frame.position.x - was.position.x, y: frame.position.y - was.position.y };
    for (const one of before)
      if (!found.has(one.id) && isInside(rectOf(one), rectOf(was)))
        found.set(one.id, { ...one, position: { x: one.position.x + by.x, y: one.position.y + by.y } });
  }
  return [...found.values()];
}

/** Moves of the nodes inside of frames that move. */
export function carriedBy(moves: readonly NodePositionChange[], before: readonly PlacedNode[]): NodePositionChange[] {
  const to = new Map(moves.map((one) => [one.id, one.position]));
  const moved = before.flatMap((one) => {
    const position = to.get(one.id);
    return position ? [{ ...one, position }] : [];
  });
  return withFrameContents(moved, before)
    .filter(({ id }) => !to.has(id))
    .map(({ id, position }) => ({ type: "position", id, position }));
}
