/** Long pictures are read like a text: what would be one long line is broken into rows.

    A row is as long as a window is wide, and what comes later does not change it. It is broken where one arrow leads on:
    arrows to the same box, or from the same box, are as one. A line of its own leads back to the beginning of the next row.
*/
import type { Layout, Level, LevelArrow, Point, Size } from "./geometry";
import { GAP_X } from "./layered";

/** As long as a row may always be. */
const ROW_LEAST = 1_100;
/** What is hardly longer is not broken at all. */
const SPARE = 1.26;
/** Pictures that are too large for one look are broken into rows that make them about so wide for their height. */
const SHAPE = 1.3;
/** Rows become longer in such steps, so that a box more moves few others. */
const STEP = 1.25;
const BETWEEN = 96;
/** So far above the next row, arrows come back to its beginning. */
const RETURN = 30;
/** Each further arrow that comes back has a lane of its own. */
const LANE = 14;
/** Nobody can follow more lines from row to row. */
const LINES_MAX = 3;
/** A further line is as bad as a row that is shorter by so much. */
const LINE_COST = 420;

/** How long a row of it is at most. */
export function rowOf({ width, height }: Size): number {
  const wish = Math.sqrt(width * (height + BETWEEN) * SHAPE);
  return ROW_LEAST * STEP ** Math.max(0, Math.round(Math.log(wish / ROW_LEAST) / Math.log(STEP)));
}

/** Whether it is to be broken. */
export const isLong = (laid: Size) => laid.width > rowOf(laid) * SPARE;

interface Cut {
  /** The first column of the next row. */
  column: number;
  /** How many lines lead across: what ends together is one, what goes on to a later column as bad as two. */
  lines: number;
  crossing: readonly LevelArrow[];
}

export function inRows(level: Level, laid: Layout & Size, sizes: ReadonlyMap<string, Size>): Layout & Size {
  if (!isLong(laid)) return laid;
  const lefts = [...new Set([...laid.positions.values()].map((place) => place.x))].sort((a, b) => a - b);
  const cuts = chosen(possible(level, laid.positions, lefts), lefts, laid);
  if (cuts.length === 0) return laid;
  const starts = [0, ...cuts.map((cut) => lefts[cut.column] ?? 0)];
  const rowAt = (x: number) => starts.findLastIndex((start) => x >= start);
  const broken = new Set(cuts.flatMap((cut) => cut.crossing.map((arrow) => arrow.id)));
  const kept = [...laid.waypoints].filter(([id]) => !broken.has(id));

  const [tops, bottoms] = [starts.map(() => Number.POSITIVE_INFINITY), starts.map(() => Number.NEGATIVE_INFINITY)];
  const hold = (row: number, top: number, bottom: number) => {
    tops[row] = Math.min(tops[row] ?? top, top);
    bottoms[row] = Math.max(bottoms[row] ?? bottom, bottom);
  };
  for (const [id, place] of laid.positions) hold(rowAt(place.x), place.y, place.y + (sizes.get(id)?.height ?? 0));
  for (const [, route] of kept) for (const point of route) hold(rowAt(point.x), point.y, point.y);
  const shifts: number[] = [];
  let y = 0;
  starts.forEach((_, row) => {
    shifts.push(y - (tops[row] ?? 0));
    y += (bottoms[row] ?? 0) - (tops[row] ?? 0) + BETWEEN + ((cuts[row]?.lines ?? 1) - 1) * LANE;
  });

  const moved = (point: Point): Point => {
    const row = rowAt(point.x);
    return { x: point.x - (starts[row] ?? 0), y: point.y + (shifts[row] ?? 0) };
  };
  const places = new Map([...laid.positions].map(([id, place]) => [id, moved(place)]));
  const routes = new Map(kept.map(([id, route]) => [id, route.map(moved)]));
  cuts.forEach((cut, at) => {
    const top = (tops[at + 1] ?? 0) + (shifts[at + 1] ?? 0);
    for (const { id, source, target } of cut.crossing) {
      const [from, to] = [places.get(source), places.get(target)];
      const isNext = (to?.x ?? 0) <= (from?.x ?? 0) && (to?.y ?? 0) >= top;
      if (isNext && rowAt(laid.positions.get(target)?.x ?? 0) === at + 1) routes.set(id, [{ x: 0, y: top - RETURN }]);
    }
  });
  const width = Math.max(...[...places].map(([id, place]) => place.x + (sizes.get(id)?.width ?? 0)));
  return { positions: places, waypoints: routes, width, height: y - BETWEEN };
}

/** Where a line may be broken, and what leads across there. */
function possible(level: Level, places: ReadonlyMap<string, Point>, lefts: readonly number[]): Cut[] {
  const column = new Map(lefts.map((left, at) => [left, at]));
  const at = (id: string) => column.get(places.get(id)?.x ?? 0) ?? 0;
  const crossing: LevelArrow[][] = lefts.map(() => []);
  for (const arrow of level.arrows) {
    const [from, to] = [at(arrow.source), at(arrow.target)];
    for (let next = Math.min(from, to) + 1; next <= Math.max(from, to); next++) crossing[next]?.push(arrow);
  }
  return crossing.flatMap((arrows, column): Cut[] => {
    if (column === 0) return [];
    const targets = new Set(arrows.map((one) => one.target));
    const next = new Set([...targets].filter((one) => at(one) === column));
    const lines = next.size + 2 * (targets.size - next.size);
    return lines <= LINES_MAX ? [{ column, lines, crossing: arrows }] : [];
  });
}

/** Row by row, each filled as well as it goes. */
function chosen(cuts: readonly Cut[], lefts: readonly number[], laid: Size): Cut[] {
  const row = rowOf(laid);
  const taken: Cut[] = [];
  for (let start = 0; laid.width - start > row * SPARE; ) {
    const length = (cut: Cut) => (lefts[cut.column] ?? 0) - start;
    const ahead = cuts.filter((cut) => length(cut) > 0);
    const fitting = ahead.filter((cut) => length(cut) <= row + GAP_X);
    const cost = (cut: Cut) => (cut.lines - 1) * LINE_COST - length(cut);
    const best = fitting.length > 0 ? fitting.reduce((now, cut) => (cost(cut) < cost(now) ? cut : now)) : ahead[0];
    if (!best) break;
    taken.push(best);
    start += length(best);
  }
  return taken;
}
