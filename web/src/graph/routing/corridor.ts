/**
 * Cheap route for large pictures, where the optimal detour costs too much: leave the source vertically, follow a free
 * horizontal line, approach the target vertically.
 * The result may be longer than the optimal route but does not cross more boxes.
 */

import type { Point } from "@/graph/layout/geometry";
import { type Rect, spanOf } from "@/graph/layout/geometry";
import type { Ends, Obstacles } from "./obstacles";

/** Free space on both sides of a line. */
const MARGIN = 5;
/** Maximum number of attempts to move the line to a free position. */
const MOVES_MAX = 40;

type Side = 1 | -1;

/** Route from `from` to `to`, leaving and arriving rightwards. Null if no route of this shape exists. */
export function corridor(from: Point, to: Point, ends: Ends, obstacles: Obstacles): Point[] | null {
  let best: Point[] | null = null;
  for (const side of [1, -1] as const) {
    const way = along(from, to, side, ends, obstacles);
    if (way && (!best || lengthOf(way) < lengthOf(best))) best = way;
  }
  return best;
}

function along(from: Point, to: Point, side: Side, ends: Ends, obstacles: Obstacles): Point[] | null {
  let [y, right, left] = [side > 0 ? Math.max(from.y, to.y) : Math.min(from.y, to.y), from.x, to.x];
  for (let move = 0; move < MOVES_MAX; move++) {
    const points: Point[] = [from, { x: right, y: from.y }, { x: right, y }, { x: left, y }, { x: left, y: to.y }, to];
    const met = (at: number) => obstacles.crossedBy(points.slice(at, at + 2), ends);
    const level = met(2);
    const first = level.length > 0 ? [] : met(1);
    const last = level.length + first.length > 0 ? [] : met(3);
    if (level.length > 0) y = beyond(level, side, "y", "height");
    else if (first.length > 0) right = beyond(first, 1, "x", "width");
    else if (last.length > 0) left = beyond(last, -1, "x", "width");
    else return obstacles.crossedBy(points, ends).length === 0 ? points : null;
  }
  return null;
}

/** Coordinate past all rectangles on one side. */
function beyond(rects: readonly Rect[], side: Side, at: "x" | "y", size: "width" | "height"): number {
  return side > 0
    ? Math.max(...rects.map((one) => one[at] + one[size])) + MARGIN
    : Math.min(...rects.map((one) => one[at])) - MARGIN;
}

function lengthOf(points: readonly Point[]): number {
  return points.slice(1).reduce((sum, point, at) => {
    const { width, height } = spanOf(points[at] as Point, point);
    return sum + width + height;
  }, 0);
}
