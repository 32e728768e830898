/**
 * SVG paths of arrows: horizontal and vertical parts are straight with rounded corners, other parts are curves with
 * horizontal ends.
 */

import type { Point } from "@/graph/layout/geometry";
import { type Rect, spanOf } from "@/graph/layout/geometry";

const CORNER = 12;
/** Number of segments that approximate a curve. */
const PIECES = 8;

export function isStraight(a: Point, b: Point): boolean {
  return a.x === b.x || a.y === b.y;
}

/** Return the `d` attribute of an SVG path. */
export function pathOf(points: readonly Point[]): string {
  const first = points[0];
  if (!first) return "";
  let path = `M ${first.x} ${first.y}`;
  for (let at = 1; at < points.length; at++) {
    const [from, to] = [points[at - 1] as Point, points[at] as Point];
    const next = points[at + 1];
    if (!isStraight(from, to)) {
      const bend = bendOf(from, to);
      path += ` C ${from.x + bend} ${from.y}, ${to.x - bend} ${to.y}, ${to.x} ${to.y}`;
    } else if (next && isStraight(to, next) && (from.x === to.x) !== (to.x === next.x)) {
      const room = Math.min(CORNER, length(from, to) / 2, length(to, next) / 2);
      const [before, after] = [toward(to, from, room), toward(to, next, room)];
      path += ` L ${before.x} ${before.y} Q ${to.x} ${to.y}, ${after.x} ${after.y}`;
    } else path += ` L ${to.x} ${to.y}`;
  }
  return path;
}

const length = (a: Point, b: Point) => Math.abs(a.x - b.x) + Math.abs(a.y - b.y);

function toward(from: Point, to: Point, far: number): Point {
  return { x: from.x + Math.sign(to.x - from.x) * far, y: from.y + Math.sign(to.y - from.y) * far };
}

/** Distance of the control points of a curve. A backward curve bends around its ends. */
function bendOf(from: Point, to: Point): number {
  return to.x > from.x ? (to.x - from.x) / 2 : 24;
}

/** Point on the part between two points; `share` from 0 to 1. */
export function pointOn(from: Point, to: Point, share: number): Point {
  if (isStraight(from, to)) return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
  const bend = bendOf(from, to);
  const rest = 1 - share;
  const [a, b, c, d] = [rest ** 3, 3 * rest ** 2 * share, 3 * rest * share ** 2, share ** 3];
  return {
    x: a * from.x + b * (from.x + bend) + c * (to.x - bend) + d * to.x,
    y: (a + b) * from.y + (c + d) * to.y,
  };
}

/** Rectangles that together cover the part between two points: one for a straight part, several for a curve. */
export function* piecesOf(from: Point, to: Point): Generator<Rect> {
  if (isStraight(from, to)) {
    yield spanOf(from, to);
    return;
  }
  let last = from;
  for (let at = 1; at <= PIECES; at++) {
    const next = pointOn(from, to, at / PIECES);
    yield spanOf(last, next);
    last = next;
  }
}
