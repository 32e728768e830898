/** A picture as a tree: boxes in flow order, with their outgoing arrows and nested boxes as children. */
import { frameName, levelsOf } from "@/graph/layout/frames";
import { adjacencyOf, flowOrder } from "@/graph/model/adjacency";
import type { Arrow, Box, Picture } from "@/graph/model/picture";

export interface Row {
  /** `node <id>` or `edge <name>`. */
  key: string;
  kind: "node" | "edge";
  id: string;
  depth: number;
  parent: string | null;
  /** Null if the row has no children. */
  isOpen: boolean | null;
  /** Position among its siblings, and their number. */
  position: number;
  siblingCount: number;
  box?: Box;
  arrow?: Arrow;
}

export const keyOf = (kind: Row["kind"], id: string) => `${kind} ${id}`;

/** The visible rows. Boxes that open a region are expanded at first, the others collapsed; `toggled` inverts that. */
export function rowsOf(picture: Picture, toggled: ReadonlySet<string>): Row[] {
  const boxes = new Map(picture.boxes.map((box) => [box.id, box]));
  const rank = new Map(flowOrder(adjacencyOf(boxes.keys(), picture.arrows)).map((id, at) => [id, at]));
  const out = new Map<string, Arrow[]>();
  for (const arrow of picture.arrows) out.set(arrow.source, [...(out.get(arrow.source) ?? []), arrow]);
  const levels = levelsOf(picture);
  const rows: Row[] = [];
  const level = (name: string): Box[] =>
    (levels.get(name)?.boxes ?? [])
      .flatMap(({ id }) => boxes.get(id) ?? [])
      .sort((a, b) => (rank.get(a.id) ?? 0) - (rank.get(b.id) ?? 0));
  const addRow = (box: Box, parent: string | null, depth: number, nth: number, of: number) => {
    const key = keyOf("node", box.id);
    const arrows = out.get(box.id) ?? [];
    const inside = level(frameName(box.id));
    const hasMore = arrows.length + inside.length > 0;
    const isOpen = hasMore ? inside.length > 0 !== toggled.has(key) : null;
    rows.push({ key, kind: "node", id: box.id, depth, parent, isOpen, position: nth, siblingCount: of, box });
    if (!isOpen) return;
    const all = arrows.length + inside.length;
    arrows.forEach((arrow, at) => {
      const row = { kind: "edge", id: arrow.id, depth: depth + 1, parent: key, isOpen: null, arrow } as const;
      rows.push({ ...row, key: keyOf("edge", arrow.id), position: at + 1, siblingCount: all });
    });
    inside.forEach((one, at) => {
      addRow(one, key, depth + 1, arrows.length + at + 1, all);
    });
  };
  const notes = (picture.notes ?? []).map(
    ({ id, name, position }): Box => ({ id, type: "note", name, detail: "", position }),
  );
  const top = [...level(""), ...notes];
  top.forEach((box, at) => {
    addRow(box, null, 1, at + 1, top.length);
  });
  return rows;
}
