/**
 * Layered layout, fast enough to run synchronously: nearly linear in the size of the graph, and deterministic.
 * each region by itself, the innermost first; then it counts as one box of its size (frames.ts)
 * connected parts in columns (layered.ts), one above the other (connectedParts.ts)
 * every edge leads to the right, but for those that lead back; only on request long parts are wrapped (rowWrap.ts)
 */

import type { Picture } from "@/graph/model/picture";
import { arrangeParts, arrangePartsInRows } from "./connectedParts";
import { withFrames } from "./frames";
import type { Layout, Point, Size } from "./geometry";
import { BOX } from "./geometry";

const ROUNDS_MAX = 8;

export interface LayoutOptions {
  /** The present positions. The vertical order of boxes is preserved where that adds no crossing. */
  stands?: ReadonlyMap<string, Point>;
  /** Wrap what is long into rows, like a text. */
  inRows?: boolean;
}

export function quickLayout(picture: Picture, { stands = new Map(), inRows = false }: LayoutOptions = {}): Layout {
  const sizes = new Map<string, Size>(picture.boxes.map((box) => [box.id, BOX]));
  return withFrames(picture, sizes, inRows ? arrangePartsInRows : arrangeParts, stands);
}

/** Repeat the layout until it is stable, so that tidying twice gives the same result. */
export function settledLayout(picture: Picture, options: LayoutOptions = {}): Map<string, Point> {
  let { positions } = quickLayout(picture, options);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const next = quickLayout(picture, { ...options, stands: positions }).positions;
    const isSame = [...next].every(([id, at]) => at.x === positions.get(id)?.x && at.y === positions.get(id)?.y);
    positions = next;
    if (isSame) break;
  }
  return positions;
}

/** Use the author's positions if every box has one; otherwise compute a layout. */
export function layoutOf(picture: Picture, options: LayoutOptions = {}): Layout {
  const placed = picture.boxes.length > 0 && picture.boxes.every((box) => box.position !== null);
  if (!placed || hasOverlaps(picture)) return quickLayout(picture, options);
  return { positions: new Map(picture.boxes.map((box) => [box.id, box.position as Point])), waypoints: new Map() };
}

/** An author does not put boxes on the same point, so equal positions are not the author's. */
function hasOverlaps(picture: Picture): boolean {
  return new Set(picture.boxes.map((box) => `${box.position?.x},${box.position?.y}`)).size < picture.boxes.length;
}
