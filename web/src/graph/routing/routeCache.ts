/**
 * Cache of computed routes. A route stays valid until something changes in the areas that its computation inspected.
 */

import type { Point, Rect } from "@/graph/layout/geometry";
import type { Obstacle } from "./obstacles";
import { SpatialGrid } from "./spatialGrid";

/** A computed route and the inputs that it depends on. */
export interface CachedRoute {
  /** The direct route that crossed an obstacle. */
  directPath: readonly Point[];
  found: readonly Point[] | null;
  inspected: readonly Rect[];
  /** Remaining shared effort before the computation, and the effort that it used. */
  effortBefore: number;
  effortSpent: number;
}

export interface RouteCache {
  cached: ReadonlyMap<string, CachedRoute>;
  obstacles: readonly Obstacle[];
}

/** A change within this distance of an inspected area invalidates the route. */
const NEAR = 5;

/**
 * Return a function that yields the cached route of an arrow if a new computation with the remaining effort would give
 * the same result.
 */
export function reusableRoutes(before: RouteCache | undefined, standing: readonly Obstacle[]) {
  const changed = before ? changedBetween(before.obstacles, standing) : null;
  return (id: string, plain: readonly Point[], left: number): CachedRoute | null => {
    const was = before?.cached.get(id);
    if (!was || !changed || !isSame(was.directPath, plain) || !isAffordable(was, left)) return null;
    return was.inspected.some((rect) => changed.near(rect, NEAR).length > 0) ? null : was;
  };
}

/**
 * The result is the same if both computations have enough effort, if both have none, or if both have exactly as much.
 */
function isAffordable({ effortBefore: had, effortSpent: spent }: CachedRoute, left: number): boolean {
  return had === left || (had > spent && left > spent) || (had <= 0 && left <= 0);
}

/** Areas of obstacles that were added or removed. */
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
