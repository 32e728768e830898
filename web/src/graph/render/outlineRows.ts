/** A picture as a tree to read: boxes in the order of the flow, under each what leads on from it and what is inside. */
import { frameName, levelsOf } from "@/graph/layout/frames";
import { adjacencyOf, inOrder } from "@/graph/model/adjacency";
import type { Arrow, Box, Picture } from "@/graph/model/picture";

export interface Row {
  /** `node <id>` or `edge <name>`. */
  key: string;
  kind: "node" | "edge";
  id: string;
  depth: number;
  parent: string | null;
  /** Null where there is nothing under it. */
  isOpen: boolean | null;
  /** Its place among its siblings, and how many they are. */
  nth: number;
  of: number;
  box?: Box;
  arrow?: Arrow;
}

export const keyOf = (kind: Row["kind"], id: string) => `${kind} ${id}`;

/** The rows that are seen. Boxes that open a group are open at first, the others closed; `turned` are the other way. */
export function rowsOf(picture: Picture, turned: ReadonlySet<string>): Row[] {
  const boxes = new Map(picture.boxes.map((box) => [box.id, box]));
  const rank = new Map(inOrder(adjacencyOf(boxes.keys(), picture.arrows)).map((id, at) => [id, at]));
  const out = new Map<string, Arrow[]>();
  for (const arrow of picture.arrows) out.set(arrow.source, [...(out.get(arrow.source) ?? []), arrow]);
  const levels = levelsOf(picture);
  const rows: Row[] = [];
  const level = (name: string): Box[] =>
    (levels.get(name)?.boxes ?? [])
      .flatMap(({ id }) => boxes.get(id) ?? [])
      .sort((a, b) => (rank.get(a.id) ?? 0) - (rank.get(b.id) ?? 0));
  const tell = (box: Box, parent: string | null, depth: number, nth: number, of: number) => {
    const key = keyOf("node", box.id);
    const arrows = out.get(box.id) ?? [];
    const inside = level(frameName(box.id));
    const hasMore = arrows.length + inside.length > 0;
    const isOpen = hasMore ? inside.length > 0 !== turned.has(key) : null;
    rows.push({ key, kind: "node", id: box.id, depth, parent, isOpen, nth, of, box });
    if (!isOpen) return;
    const all = arrows.length + inside.length;
    arrows.forEach((arrow, at) => {
      const row = { kind: "edge", id: arrow.id, depth: depth + 1, parent: key, isOpen: null, arrow } as const;
      rows.push({ ...row, key: keyOf("edge", arrow.id), nth: at + 1, of: all });
    });
    inside.forEach((one, at) => {
      tell(one, key, depth + 1, arrows.length + at + 1, all);
    });
  };
  const top = level("");
  top.forEach((box, at) => {
    tell(box, null, 1, at + 1, top.length);
  });
  return rows;
}
