/**
 * Wrap long layouts into rows, like text.
 * The row length depends on the window shape, and later boxes do not change earlier rows. A row is broken where few
 * arrows lead on: arrows with the same target, or from the same source, count as one. A line of its own leads back to
 * the beginning of the next row.
 */
import type { Layout, Level, LevelArrow, Point, Size } from "./geometry";
import { GAP_X } from "./layered";

/** A row may always have this length. */
const ROW_MIN = 1_100;
/** A layout that exceeds the row length by less than this factor is not wrapped. */
const TOLERANCE = 1.26;
/** Desired ratio of width to height for layouts that do not fit into the window. */
const ASPECT_RATIO = 1.3;
/** Row lengths grow by this factor, so that one more box moves few others. */
const STEP = 1.25;
const ROW_GAP = 96;
/** Distance above the next row at which arrows return to its beginning. */
const RETURN_OFFSET = 30;
/** Distance between returning arrows. */
const LANE = 14;
/** More lines from row to row are too hard to follow. */
const LINES_MAX = 3;
/** One more line is as bad as a row shorter by this length. */
const LINE_COST = 420;

/** Maximum row length for a layout of this size. */
export function rowLengthFor({ width, height }: Size): number {
  const wish = Math.sqrt(width * (height + ROW_GAP) * ASPECT_RATIO);
  return ROW_MIN * STEP ** Math.max(0, Math.round(Math.log(wish / ROW_MIN) / Math.log(STEP)));
}

/** Whether the layout should be wrapped. */
export const isLong = (laid: Size) => laid.width > rowLengthFor(laid) * TOLERANCE;

interface Cut {
  /** First column of the next row. */
  column: number;
  /**
   * Number of lines across the cut: arrows with the same target count as one; those that end beyond the next column
   * count twice.
   */
  lines: number;
  crossing: readonly LevelArrow[];
}

export function wrapRows(level: Level, laid: Layout & Size, sizes: ReadonlyMap<string, Size>): Layout & Size {
  if (!isLong(laid)) return laid;
  const lefts = [...new Set([...laid.positions.values()].map((place) => place.x))].sort((a, b) => a - b);
  const cuts = chooseCuts(possibleCuts(level, laid.positions, lefts), lefts, laid);
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
    y += (bottoms[row] ?? 0) - (tops[row] ?? 0) + ROW_GAP + ((cuts[row]?.lines ?? 1) - 1) * LANE;
  });

  const moved = (point: Point): Point => {
    const row = rowAt(point.x);
    return { x: point.x - (starts[row] ?? 0), y: point.y + (shifts[row] ?? 0) };
  };
  const positions = new Map([...laid.positions].map(([id, place]) => [id, moved(place)]));
  const routes = new Map(kept.map(([id, route]) => [id, route.map(moved)]));
  cuts.forEach((cut, at) => {
    const top = (tops[at + 1] ?? 0) + (shifts[at + 1] ?? 0);
    for (const { id, source, target } of cut.crossing) {
      const [from, to] = [positions.get(source), positions.get(target)];
      const isNext = (to?.x ?? 0) <= (from?.x ?? 0) && (to?.y ?? 0) >= top;
      if (isNext && rowAt(laid.positions.get(target)?.x ?? 0) === at + 1)
        routes.set(id, [{ x: 0, y: top - RETURN_OFFSET }]);
    }
  });
  const width = Math.max(...[...positions].map(([id, place]) => place.x + (sizes.get(id)?.width ?? 0)));
  return { positions, waypoints: routes, width, height: y - ROW_GAP };
}

/** Columns before which a row may be broken, with the arrows that cross there. */
function possibleCuts(level: Level, positions: ReadonlyMap<string, Point>, lefts: readonly number[]): Cut[] {
  const column = new Map(lefts.map((left, at) => [left, at]));
  const at = (id: string) => column.get(positions.get(id)?.x ?? 0) ?? 0;
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

/** Choose the cuts row by row, filling each row as far as possible. */
function chooseCuts(cuts: readonly Cut[], lefts: readonly number[], laid: Size): Cut[] {
  const row = rowLengthFor(laid);
  const taken: Cut[] = [];
  for (let start = 0; laid.width - start > row * TOLERANCE; ) {
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
