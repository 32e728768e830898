/** A layered layout that is there at once: near linear in what it lays out, and the same for the same graph.

    each group for itself, the innermost first; then it is one box of its size (frames.ts)
    what is connected in columns (layered.ts), in rows where that is too long (rows.ts), one above the other (parts.ts)
*/

import type { Picture } from "@/graph/model/picture";
import { arrangeParts } from "./connectedParts";
import { withFrames } from "./frames";
import type { Layout, Point, Size } from "./geometry";
import { BOX } from "./geometry";

const ROUNDS_MAX = 8;

/** `stands`: where boxes stand now. What stands above another stays there where that costs no crossing. */
export function quickLayout(picture: Picture, stands: ReadonlyMap<string, Point> = new Map()): Layout {
  const sizes = new Map<string, Size>(picture.boxes.map((box) => [box.id, BOX]));
  return withFrames(picture, sizes, arrangeParts, stands);
}

/** Laid out until once more changes nothing: who asks twice gets the same. */
export function settledLayout(picture: Picture, stands: ReadonlyMap<string, Point>): Map<string, Point> {
  let { positions: places } = quickLayout(picture, stands);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const next = quickLayout(picture, places).positions;
    const isSame = [...next].every(([id, at]) => at.x === places.get(id)?.x && at.y === places.get(id)?.y);
    places = next;
    if (isSame) break;
  }
  return places;
}

/** Where the author put the boxes, if all have a place; else laid out. */
export function layoutOf(picture: Picture): Layout {
  const placed = picture.boxes.length > 0 && picture.boxes.every((box) => box.position !== null);
  if (!placed || coversItself(picture)) return quickLayout(picture);
  return { positions: new Map(picture.boxes.map((box) => [box.id, box.position as Point])), waypoints: new Map() };
}

/** Boxes that stand upon each other were never put there by anybody. */
function coversItself(picture: Picture): boolean {
  return new Set(picture.boxes.map((box) => `${box.position?.x},${box.position?.y}`)).size < picture.boxes.length;
}
