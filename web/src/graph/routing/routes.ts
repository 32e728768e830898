/**
 * Routes of the arrows around boxes and frames.
 * the layout's route, or the direct one ─▶ if it crosses anything: a detour ─▶ overlapping lines are moved apart ─▶
 * labels are placed where there is room
 */

import { framesOf } from "@/graph/layout/frames";
import type { Layout, Point } from "@/graph/layout/geometry";
import { BOX, boundingRect, portOffset, type Rect } from "@/graph/layout/geometry";
import type { Arrow, Picture } from "@/graph/model/picture";
import { corridor } from "./corridor";
import { detour, type Effort } from "./detour";
import { anchorOf, type Label, Labels } from "./labels";
import { type Ends, type Obstacle, Obstacles } from "./obstacles";
import { type CachedRoute, type RouteCache, reusableRoutes } from "./routeCache";
import { separateLines } from "./separation";

export interface Route {
  /** From the source to the target. */
  points: readonly Point[];
  label: Label;
}

export interface Routes extends RouteCache {
  routes: ReadonlyMap<string, Route>;
  /** Bounding rectangle of everything drawn. */
  bounds: Rect;
}

/** Space before the target for the arrowhead and the drag handle. */
const TIP = 5;
const STUB = 22;
const BACK_OFFSET = 30;
/** Distance between arrows that connect the same two boxes. */
const PARALLEL_GAP = 26;
const CLEARANCE = [12, 4, 0] as const;
const ROUNDS = 12;
const OBSTACLES_MAX = 64;
const EFFORT = 150_000;

export function routesOf(picture: Picture, layout: Layout, before?: Routes): Routes {
  const frames = framesOf(picture.regions ?? [], layout.positions);
  const obstacles = new Obstacles(layout.positions, frames);
  const paths = new Map<string, readonly Point[]>();
  const blocked: { arrow: Arrow; met: Obstacle[]; inspected: Rect[]; length: number }[] = [];
  const twins = new Map<string, number>();
  for (const arrow of picture.arrows) {
    const [from, to] = [layout.positions.get(arrow.source), layout.positions.get(arrow.target)];
    if (!from || !to) continue;
    const pair = `${arrow.source}\n${arrow.target}`;
    const twin = twins.get(pair) ?? 0;
    twins.set(pair, twin + 1);
    const points = directPath(startOf(from, portOffset(arrow.port)), endOf(to), layout.waypoints.get(arrow.id), twin);
    paths.set(arrow.id, points);
    obstacles.inspected = [];
    const met = obstacles.crossedBy(points, arrow);
    const { inspected } = obstacles;
    if (met.length > 0)
      blocked.push({ arrow, met, inspected, length: Math.abs(from.x - to.x) + Math.abs(from.y - to.y) });
  }
  const effort: Effort = { left: EFFORT };
  const cached = new Map<string, CachedRoute>();
  const reusable = reusableRoutes(before, obstacles.all);
  for (const { arrow, met, inspected } of blocked.sort((a, b) => a.length - b.length)) {
    const points = paths.get(arrow.id) as readonly Point[];
    const had = effort.left;
    let route = reusable(arrow.id, points, had);
    if (route) effort.left -= route.effortSpent;
    else {
      obstacles.inspected = inspected;
      const found = routeAround(points, met, arrow, obstacles, effort);
      route = { directPath: points, found, inspected, effortBefore: had, effortSpent: had - effort.left };
    }
    cached.set(arrow.id, route);
    paths.set(arrow.id, route.found ?? points);
  }
  obstacles.inspected = [];
  const parted = separateLines(picture.arrows, paths, obstacles);
  const labels = new Labels(layout.positions, frames);
  const routes = new Map<string, Route>();
  for (const arrow of picture.arrows) {
    const points = parted.get(arrow.id);
    if (!points) continue;
    const line = { points, label: arrow.label ? labels.place(arrow.label, points) : anchorOf(points) };
    const was = before?.routes.get(arrow.id);
    // An unchanged route keeps its object, so that React does not render the arrow again.
    routes.set(arrow.id, was && JSON.stringify(was) === JSON.stringify(line) ? was : line);
  }
  return { routes, bounds: boundsOf(layout, frames, routes), cached, obstacles: obstacles.all };
}

export const startOf = (at: Point, offset = 0): Point => ({ x: at.x + BOX.width, y: at.y + BOX.height / 2 + offset });
export const endOf = (at: Point): Point => ({ x: at.x - TIP, y: at.y + BOX.height / 2 });

/** The route without regard to obstacles. */
export function directPath(from: Point, to: Point, hint: readonly Point[] = [], twin = 0): Point[] {
  const aside = twin === 0 ? 0 : (twin % 2 === 1 ? 1 : -1) * Math.ceil(twin / 2) * PARALLEL_GAP;
  if (to.x > from.x) {
    if (hint.length > 0 || aside === 0) return [from, ...hint, to];
    const [third, y] = [(to.x - from.x) / 3, (from.y + to.y) / 2 + aside];
    return [from, { x: from.x + third, y }, { x: to.x - third, y }, to];
  }
  return backwardPath(from, to, (hint[0]?.y ?? backwardY(from, to)) + Math.abs(aside) / 2);
}

/** Vertical position of a backward arrow: between the boxes if one is above the other, otherwise below both. */
function backwardY(from: Point, to: Point): number {
  const room = Math.abs(from.y - to.y) - BOX.height;
  return room > 2 * PARALLEL_GAP ? (from.y + to.y) / 2 : Math.max(from.y, to.y) + BOX.height / 2 + BACK_OFFSET;
}

function backwardPath(from: Point, to: Point, y: number): Point[] {
  const [right, left] = [from.x + STUB, to.x - STUB];
  return [from, { x: right, y: from.y }, { x: right, y }, { x: left, y }, { x: left, y: to.y }, to];
}

/**
 * Route around the crossed obstacles, then around those that the new route crosses, and so on. Cross frames only if no
 * other route exists.
 */
function routeAround(
  points: readonly Point[],
  met: readonly Obstacle[],
  arrow: Ends,
  obstacles: Obstacles,
  effort: Effort,
): readonly Point[] | null {
  const [from, to] = [points[0] as Point, points.at(-1) as Point];
  const start = { x: stub(from.x, 1, (x) => obstacles.at({ x, y: from.y }, 2)), y: from.y };
  const end = { x: stub(to.x, -1, (x) => obstacles.at({ x, y: to.y }, 2)), y: to.y };
  for (const isOverFrames of [false, true]) {
    if (effort.left <= 0) break;
    const known = new Set([...obstacles.endBoxesOf(arrow), ...met.filter((one) => !isOverFrames || one.box !== null)]);
    for (let round = 0; round < ROUNDS && known.size <= OBSTACLES_MAX; round++) {
      const way = detour(
        start,
        end,
        [...known].flatMap((one) => withClearance(one, start, end)),
        effort,
      );
      if (!way) break;
      const found = withoutStraightPoints([from, ...way, to]);
      const more = obstacles.crossedBy(found, arrow, isOverFrames).filter((one) => !isKnown(one, known));
      if (more.length === 0) return found;
      for (const one of more) known.add(one);
    }
  }
  const found = corridor(start, end, arrow, obstacles);
  return found && withoutStraightPoints([from, ...found, to]);
}

function isKnown(one: Obstacle, known: ReadonlySet<Obstacle>): boolean {
  return known.has(one) || [...known].some((other) => other.box !== null && other.box === one.box);
}

/** Length of the straight part at the end of an arrow, shorter if a box is close. */
function stub(x: number, way: 1 | -1, at: (x: number) => readonly Obstacle[]): number {
  const own = at(x).length;
  const far = [STUB, STUB / 2, STUB / 4].find((far) => at(x + way * far).length === 0) ?? (own > 0 ? STUB / 4 : 0);
  return x + way * far;
}

/**
 * Enlarge an obstacle by the largest clearance that contains neither end. An obstacle that covers an end cannot be
 * avoided and is dropped.
 */
function withClearance(one: Rect, start: Point, end: Point): Rect[] {
  for (const room of CLEARANCE) {
    const rect = { x: one.x - room, y: one.y - room, width: one.width + 2 * room, height: one.height + 2 * room };
    if (!isInside(start, rect) && !isInside(end, rect)) return [rect];
  }
  return [];
}

function isInside(point: Point, rect: Rect): boolean {
  return point.x > rect.x && point.x < rect.x + rect.width && point.y > rect.y && point.y < rect.y + rect.height;
}

/** Remove duplicate points and points in the middle of a straight part. */
export function withoutStraightPoints(points: readonly Point[]): Point[] {
  const found: Point[] = [];
  for (const point of points) {
    const [before, last] = [found.at(-2), found.at(-1)];
    if (last && last.x === point.x && last.y === point.y) continue;
    const isOn =
      before && last && ((before.x === last.x && last.x === point.x) || (before.y === last.y && last.y === point.y));
    if (isOn) found.pop();
    found.push(point);
  }
  return found;
}

function boundsOf(layout: Layout, frames: readonly Rect[], lines: ReadonlyMap<string, Route>): Rect {
  const boxes = [...layout.positions.values()].map((at) => ({ ...at, ...BOX }));
  const drawn = [...lines.values()].flatMap(({ points, label }) => [
    ...points.map((point) => ({ ...point, width: 0, height: 0 })),
    { x: label.x - label.width / 2, y: label.y - label.height / 2, width: label.width, height: label.height },
  ]);
  return boundingRect([...boxes, ...frames, ...drawn]) ?? { x: 0, y: 0, ...BOX };
}
