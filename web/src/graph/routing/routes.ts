/** Where the arrows of a picture go, around whatever stands in between.

    the way the layout proposes, or the plain one ─▶ is anything in between? a detour ─▶ lines that would lie
    upon one another are moved apart ─▶ labels where there is room
*/

import { framesOf } from "@/graph/layout/frames";
import type { Layout, Point } from "@/graph/layout/geometry";
import { around, BOX, type Rect } from "@/graph/layout/geometry";
import type { Arrow, Picture } from "@/graph/model/picture";
import { corridor } from "./corridor";
import { detour, type Effort } from "./detour";
import { anchorOf, type Label, Labels } from "./labels";
import { type Ends, type Obstacle, Obstacles } from "./obstacles";
import { type CachedRoute, type RouteCache, reusableRoutes } from "./routeCache";
import { separated } from "./separation";

export interface Route {
  /** The first at its source, the last at its target. */
  points: readonly Point[];
  label: Label;
}

export interface Routes extends RouteCache {
  routes: ReadonlyMap<string, Route>;
  /** All that is drawn is inside. */
  bounds: Rect;
}

/** Before a target there is room for a tip and what one takes hold of it by. */
const TIP = 5;
const STUB = 22;
const BELOW = 30;
/** Two arrows between the same boxes. */
const TWIN = 26;
const CLEARANCE = [12, 4, 0] as const;
const ROUNDS = 12;
const OBSTACLES_MAX = 64;
const EFFORT = 150_000;

export function routesOf(picture: Picture, layout: Layout, before?: Routes): Routes {
  const frames = framesOf(picture.regions ?? [], layout.positions);
  const obstacles = new Obstacles(layout.positions, frames);
  const ways = new Map<string, readonly Point[]>();
  const hindered: { arrow: Arrow; met: Obstacle[]; looked: Rect[]; length: number }[] = [];
  const twins = new Map<string, number>();
  for (const arrow of picture.arrows) {
    const [from, to] = [layout.positions.get(arrow.source), layout.positions.get(arrow.target)];
    if (!from || !to) continue;
    const pair = `${arrow.source}\n${arrow.target}`;
    const twin = twins.get(pair) ?? 0;
    twins.set(pair, twin + 1);
    const points = plain(startOf(from), endOf(to), layout.waypoints.get(arrow.id), twin);
    ways.set(arrow.id, points);
    obstacles.looked = [];
    const met = obstacles.crossedBy(points, arrow);
    const { looked } = obstacles;
    if (met.length > 0)
      hindered.push({ arrow, met, looked, length: Math.abs(from.x - to.x) + Math.abs(from.y - to.y) });
  }
  const effort: Effort = { left: EFFORT };
  const courses = new Map<string, CachedRoute>();
  const kept = reusableRoutes(before, obstacles.all);
  for (const { arrow, met, looked } of hindered.sort((a, b) => a.length - b.length)) {
    const points = ways.get(arrow.id) as readonly Point[];
    const had = effort.left;
    let course = kept(arrow.id, points, had);
    if (course) effort.left -= course.spent;
    else {
      obstacles.looked = looked;
      const found = past(points, met, arrow, obstacles, effort);
      course = { plain: points, found, looked, had, spent: had - effort.left };
    }
    courses.set(arrow.id, course);
    ways.set(arrow.id, course.found ?? points);
  }
  obstacles.looked = [];
  const parted = separated(picture.arrows, ways, obstacles);
  const labels = new Labels(layout.positions, frames);
  const lines = new Map<string, Route>();
  for (const arrow of picture.arrows) {
    const points = parted.get(arrow.id);
    if (!points) continue;
    const line = { points, label: arrow.label ? labels.place(arrow.label, points) : anchorOf(points) };
    const was = before?.routes.get(arrow.id);
    // What did not change stays the same object, and is not drawn again.
    lines.set(arrow.id, was && JSON.stringify(was) === JSON.stringify(line) ? was : line);
  }
  return { routes: lines, bounds: boundsOf(layout, frames, lines), cached: courses, standing: obstacles.all };
}

export const startOf = (at: Point): Point => ({ x: at.x + BOX.width, y: at.y + BOX.height / 2 });
export const endOf = (at: Point): Point => ({ x: at.x - TIP, y: at.y + BOX.height / 2 });

/** As one would draw it if nothing stood in between. */
export function plain(from: Point, to: Point, hint: readonly Point[] = [], twin = 0): Point[] {
  const aside = twin === 0 ? 0 : (twin % 2 === 1 ? 1 : -1) * Math.ceil(twin / 2) * TWIN;
  if (to.x > from.x) {
    if (hint.length > 0 || aside === 0) return [from, ...hint, to];
    const [third, y] = [(to.x - from.x) / 3, (from.y + to.y) / 2 + aside];
    return [from, { x: from.x + third, y }, { x: to.x - third, y }, to];
  }
  return wayBack(from, to, (hint[0]?.y ?? heightBack(from, to)) + Math.abs(aside) / 2);
}

/** Between what stands one above the other, else below both. */
function heightBack(from: Point, to: Point): number {
  const room = Math.abs(from.y - to.y) - BOX.height;
  return room > 2 * TWIN ? (from.y + to.y) / 2 : Math.max(from.y, to.y) + BOX.height / 2 + BELOW;
}

function wayBack(from: Point, to: Point, y: number): Point[] {
  const [right, left] = [from.x + STUB, to.x - STUB];
  return [from, { x: right, y: from.y }, { x: right, y }, { x: left, y }, { x: left, y: to.y }, to];
}

/** Around what was met, and what is met on that way, and so on. Over frames only if there is no other way. */
function past(
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
    const known = new Set([...obstacles.ownOf(arrow), ...met.filter((one) => !isOverFrames || one.box !== null)]);
    for (let round = 0; round < ROUNDS && known.size <= OBSTACLES_MAX; round++) {
      const way = detour(
        start,
        end,
        [...known].flatMap((one) => withRoom(one, start, end)),
        effort,
      );
      if (!way) break;
      const found = simple([from, ...way, to]);
      const more = obstacles.crossedBy(found, arrow, isOverFrames).filter((one) => !isKnown(one, known));
      if (more.length === 0) return found;
      for (const one of more) known.add(one);
    }
  }
  const found = corridor(start, end, arrow, obstacles);
  return found && simple([from, ...found, to]);
}

function isKnown(one: Obstacle, known: ReadonlySet<Obstacle>): boolean {
  return known.has(one) || [...known].some((other) => other.box !== null && other.box === one.box);
}

/** How far an arrow goes straight on at its end: less where a box stands close by. */
function stub(x: number, way: 1 | -1, at: (x: number) => readonly Obstacle[]): number {
  const own = at(x).length;
  const far = [STUB, STUB / 2, STUB / 4].find((far) => at(x + way * far).length === 0) ?? (own > 0 ? STUB / 4 : 0);
  return x + way * far;
}

/** With room around it, as long as neither end lies in there. What stands upon an end cannot be passed. */
function withRoom(one: Rect, start: Point, end: Point): Rect[] {
  for (const room of CLEARANCE) {
    const rect = { x: one.x - room, y: one.y - room, width: one.width + 2 * room, height: one.height + 2 * room };
    if (!isInside(start, rect) && !isInside(end, rect)) return [rect];
  }
  return [];
}

function isInside(point: Point, rect: Rect): boolean {
  return point.x > rect.x && point.x < rect.x + rect.width && point.y > rect.y && point.y < rect.y + rect.height;
}

/** Without points in the middle of a straight part. */
export function simple(points: readonly Point[]): Point[] {
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
  return around([...boxes, ...frames, ...drawn]) ?? { x: 0, y: 0, ...BOX };
}
