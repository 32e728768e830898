/**
 * Layered layout, fast enough to run synchronously: nearly linear in the size of the graph, and deterministic.
 * each region by itself, the innermost first; then it counts as one box of its size (frames.ts)
 * connected parts in columns (layered.ts), in rows where that becomes too long (rowWrap.ts), one above the other
 * (connectedParts.ts)
 */

import type { Picture } from "@/graph/model/picture";
import { arrangeParts } from "./connectedParts";
import { withFrames } from "./frames";
import type { Layout, Point, Size } from "./geometry";
import { BOX } from "./geometry";

const ROUNDS_MAX = 8;

/** `stands` holds the present positions. The vertical order of boxes is preserved where that adds no crossing. */
export function quickLayout(picture: Picture, stands: ReadonlyMap<string, Point> = new Map()): Layout {
  const sizes = new Map<string, Size>(picture.boxes.map((box) => [box.id, BOX]));
  return withFrames(picture, sizes, arrangeParts, stands);
}

/** Repeat the layout until it is stable, so that tidying twice gives the same result. */
export function settledLayout(picture: Picture, stands: ReadonlyMap<string, Point>): Map<string, Point> {
  let { positions } = quickLayout(picture, stands);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const next = quickLayout(picture, positions).positions;
    const isSame = [...next].every(([id, at]) => at.x === positions.get(id)?.x && at.y === positions.get(id)?.y);
    positions = next;
    if (isSame) break;
  }
  return positions;
}

/** Use the author's positions if every box has one; otherwise compute a layout. */
export function layoutOf(picture: Picture): Layout {
  const placed = picture.boxes.length > 0 && picture.boxes.every((box) => box.position !== null);
  if (!placed || hasOverlaps(picture)) return quickLayout(picture);
  return { positions: new Map(picture.boxes.map((box) => [box.id, box.position as Point])), waypoints: new Map() };
}

/** An author does not put boxes on the same point, so equal positions are not the author's. */
function hasOverlaps(picture: Picture): boolean {
  return new Set(picture.boxes.map((box) => `${box.position?.x},${box.position?.y}`)).size < picture.boxes.length;
}
