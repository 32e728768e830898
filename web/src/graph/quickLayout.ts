/** A layered layout that is there at once: near linear in what it lays out, and the same for the same graph.

    each group for itself, the innermost first; then it is one box of its size (frames.ts)
    what is connected in columns (layered.ts), in rows where that is too long (rows.ts), one above the other (parts.ts)
*/
import { BOX } from "./box";
import { withFrames } from "./frames";
import { arranged } from "./parts";
import type { Picture } from "./picture";

export interface Point {
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Where boxes stand (their upper left corner), and by which points long arrows go. */
export interface Layout {
  places: Map<string, Point>;
  routes: Map<string, Point[]>;
}

/** One level: what stands on it and what leads from one to another there. */
export interface Level {
  boxes: {
    id: string;
    /** How high it stands now, where that is to stay. */
    stands?: number;
  }[];
  arrows: LevelArrow[];
}

export interface LevelArrow {
  id: string;
  source: string;
  target: string;
  /** So much room its words need. */
  room?: number;
  /** It leads away from the main line. */
  isAside?: boolean;
  /** Where it leaves and where it ends, from the middle of what it leaves and of what it leads to. */
  from?: number;
  to?: number;
}

const ROUNDS_MAX = 8;

/** `stands`: where boxes stand now. What stands above another stays there where that costs no crossing. */
export function quickLayout(picture: Picture, stands: ReadonlyMap<string, Point> = new Map()): Layout {
  const sizes = new Map<string, Size>(picture.boxes.map((box) => [box.id, BOX]));
  return withFrames(picture, sizes, arranged, stands);
}

/** Laid out until once more changes nothing: who asks twice gets the same. */
export function settled(picture: Picture, stands: ReadonlyMap<string, Point>): Map<string, Point> {
  let { places } = quickLayout(picture, stands);
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const next = quickLayout(picture, places).places;
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
  return { places: new Map(picture.boxes.map((box) => [box.id, box.position as Point])), routes: new Map() };
}

/** Boxes that stand upon each other were never put there by anybody. */
function coversItself(picture: Picture): boolean {
  return new Set(picture.boxes.map((box) => `${box.position?.x},${box.position?.y}`)).size < picture.boxes.length;
}
