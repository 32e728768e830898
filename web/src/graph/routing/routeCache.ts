/** The courses of arrows, found once: they stay what they were as long as nothing changes where was looked. */

import type { Point, Rect } from "@/graph/layout/geometry";
import type { Obstacle } from "./obstacles";
import { SpatialGrid } from "./spatialGrid";

/** How an arrow goes, and what that rests on. */
export interface CachedRoute {
  /** The way that was hindered. */
  plain: readonly Point[];
  found: readonly Point[] | null;
  looked: readonly Rect[];
  /** What was left of the common effort before, and what it took of it. */
  had: number;
  spent: number;
}

export interface RouteCache {
  cached: ReadonlyMap<string, CachedRoute>;
  standing: readonly Obstacle[];
}

/** What is nearer to where was looked than this, may have been seen. */
const NEAR = 5;

/** Whether a course of before is the one that would be found now, where so much effort is left. */
export function reusableRoutes(before: RouteCache | undefined, standing: readonly Obstacle[]) {
  const changed = before ? changedBetween(before.standing, standing) : null;
  return (id: string, plain: readonly Point[], left: number): CachedRoute | null => {
    const was = before?.cached.get(id);
    if (!was || !changed || !isSame(was.plain, plain) || !isAffordable(was, left)) return null;
    return was.looked.some((rect) => changed.near(rect, NEAR).length > 0) ? null : was;
  };
}

/** With enough left, or with nothing left both times, the same is found; else only with exactly as much. */
function isAffordable({ had, spent }: CachedRoute, left: number): boolean {
  return had === left || (had > spent && left > spent) || (had <= 0 && left <= 0);
}

/** Where anything stood that stands there no more, and where anything stands that did not. */
function changedBetween(before: readonly Obstacle[], now: readonly Obstacle[]): SpatialGrid<Rect> {
  const [was, is] = [new Set(before.map(keyOf)), new Set(now.map(keyOf))];
  return new SpatialGrid<Rect>([
    ...before.filter((one) => !is.has(keyOf(one))),
    ...now.filter((one) => !was.has(keyOf(one))),
  ]);
}

const keyOf = ({ x, y, width, height, box, members }: Obstacle) =>
  JSON.stringify([x, y, width, height, box, members && [...members]]);

function isSame(a: readonly Point[], b: readonly Point[]): boolean {
  return a.length === b.length && a.every((one, at) => one.x === b[at]?.x && one.y === b[at]?.y);
}
