/** Move overlapping lines apart, so that the user can follow each of them. */

import type { Point } from "@/graph/layout/geometry";
import { spanOf } from "@/graph/layout/geometry";
import type { Arrow } from "@/graph/model/picture";
import { Lanes, type Straight } from "./lanes";
import type { Ends, Obstacles } from "./obstacles";
import { isStraight } from "./paths";

interface Part extends Straight, Ends {}

const MIN_DISTANCE = 4;
const SHIFTS = [7, -7, 14, -14, 21, -21] as const;
/** Minimum length of the first and last part of a line. */
const STUB_MIN = 7;

type Paths = ReadonlyMap<string, readonly Point[]>;

export function separateLines(arrows: readonly Arrow[], paths: Paths, obstacles: Obstacles): Paths {
  const taken = new Lanes<Part>(MIN_DISTANCE);
  const found = new Map<string, readonly Point[]>();
  for (const arrow of arrows) {
    let points = paths.get(arrow.id);
    if (!points) continue;
    // Curves separate by themselves. Arrows that share a source or a target may overlap.
    if (points.length > 3 && isBent(points)) {
      for (let at = 1; at <= points.length - 3; at++) points = shiftPart(points, at, arrow, taken, obstacles);
      for (let at = 1; at <= points.length - 3; at++) taken.add(partOf(points, at, arrow));
    }
    found.set(arrow.id, points);
  }
  return found;
}

function isBent(points: readonly Point[]): boolean {
  return points.every((point, at) => at === 0 || isStraight(points[at - 1] as Point, point));
}

function partOf(points: readonly Point[], at: number, { source, target }: Ends): Part {
  const [from, to] = [points[at] as Point, points[at + 1] as Point];
  return { ...spanOf(from, to), source, target, isLevel: from.y === to.y };
}

function shiftPart(
  points: readonly Point[],
  at: number,
  ends: Ends,
  taken: Lanes<Part>,
  obstacles: Obstacles,
): readonly Point[] {
  const clashes = (part: Part) =>
    taken.hasBeside(part, (one) => one.source !== part.source && one.target !== part.target);
  const part = partOf(points, at, ends);
  if (!clashes(part)) return points;
  for (const shift of SHIFTS) {
    const move = (point: Point) =>
      part.isLevel ? { x: point.x, y: point.y + shift } : { x: point.x + shift, y: point.y };
    const next = points.map((point, n) => (n === at || n === at + 1 ? move(point) : point));
    if (!hasStubs(next) || clashes(partOf(next, at, ends))) continue;
    if (obstacles.crossedBy(next.slice(at - 1, at + 3), ends).length === 0) return next;
  }
  return points;
}

function hasStubs(points: readonly Point[]): boolean {
  const [first, second, last, end] = [points[0], points[1], points.at(-2), points.at(-1)] as [
    Point,
    Point,
    Point,
    Point,
  ];
  return second.x >= first.x + STUB_MIN && last.x <= end.x - STUB_MIN;
}
