/**
 * Arrange the connected parts of a level one above the other; each part is laid out in columns and, on request, wrapped
 * into rows if it is too long.
 */

import { adjacencyOf } from "@/graph/model/adjacency";
import type { Layout, Level, Point, Size } from "./geometry";
import { GAP_Y } from "./heights";
import { flowDirection, GAP_X, groupByEnd, layered } from "./layered";
import { isLong, wrapRows } from "./rowWrap";

/** Vertical gap if one of two parts has more than one line. */
const GAP_PARTS = 60;
/** Space to the left of a wrapped run, for the arrows that return to the next row. */
const RUN_PAD = 34;

type SizedLayout = Layout & Size;
type Sizes = ReadonlyMap<string, Size>;

export const arrangeParts = (level: Level, sizes: Sizes): SizedLayout => stacked(level, sizes, layered);

export const arrangePartsInRows = (level: Level, sizes: Sizes): SizedLayout => stacked(level, sizes, layoutInRows);

function stacked(level: Level, sizes: Sizes, layoutPart: (part: Level, sizes: Sizes) => SizedLayout): SizedLayout {
  const parts = partsOf(level).map((part) => layoutPart(part, sizes));
  const positions = new Map<string, Point>();
  const routes = new Map<string, Point[]>();
  let [y, width, gap] = [0, 0, 0];
  for (const part of parts) {
    const isLine = new Set([...part.positions.values()].map((at) => at.y)).size <= 1;
    const between = isLine ? GAP_Y : GAP_PARTS;
    if (y > 0) y += Math.max(gap, between);
    place(part, { x: 0, y }, positions, routes);
    y += part.height;
    width = Math.max(width, part.width);
    gap = between;
  }
  return { positions, waypoints: routes, width, height: y };
}

function place(laid: SizedLayout, at: Point, positions: Map<string, Point>, routes: Map<string, Point[]>): void {
  const moved = (point: Point) => ({ x: point.x + at.x, y: point.y + at.y });
  for (const [id, point] of laid.positions) positions.set(id, moved(point));
  for (const [id, route] of laid.waypoints) routes.set(id, route.map(moved));
}

/** Connected parts, ordered by the position of their highest box if known, otherwise in document order. */
function partsOf(level: Level): Level[] {
  const both = [...level.arrows, ...level.arrows.map(({ source, target }) => ({ source: target, target: source }))];
  const adjacency = adjacencyOf(
    level.boxes.map((box) => box.id),
    both,
  );
  const part = new Map<string, number>();
  let count = 0;
  for (const { id } of level.boxes) {
    if (part.has(id)) continue;
    const waiting = [id];
    part.set(id, count);
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop())
      for (const next of adjacency.get(one) ?? [])
        if (!part.has(next)) {
          part.set(next, count);
          waiting.push(next);
        }
    count += 1;
  }
  const parts: Level[] = Array.from({ length: count }, () => ({ boxes: [], arrows: [] }));
  for (const box of level.boxes) parts[part.get(box.id) ?? 0]?.boxes.push(box);
  for (const arrow of level.arrows) parts[part.get(arrow.source) ?? 0]?.arrows.push(arrow);
  const highest = (one: Level) => Math.min(...one.boxes.map(({ currentY }) => currentY ?? Number.POSITIVE_INFINITY));
  return parts
    .map((one) => ({ one, at: highest(one) }))
    .sort((a, b) => (a.at === b.at ? 0 : a.at - b.at))
    .map(({ one }) => one);
}

function layoutInRows(level: Level, sizes: Sizes): SizedLayout {
  const laid = wrapRows(level, layered(level, sizes), sizes);
  if (!isLong(laid)) return laid;
  const runs = runsOf(level, sizes);
  if (runs.length === 0) return laid;
  return withRuns(level, runs, sizes);
}

/** Wrap each long run into rows and lay it out as one box of the resulting size. */
function withRuns(level: Level, runs: readonly string[][], sizes: Sizes): SizedLayout {
  const inside = new Map(runs.flatMap((run) => run.map((id): [string, string] => [id, `run\n${run[0]}`])));
  const shown = (id: string) => inside.get(id) ?? id;
  const known = new Map(sizes);
  const done = new Map<string, SizedLayout>();
  const boxOf = new Map(level.boxes.map((box) => [box.id, box]));
  for (const run of runs) {
    const own = new Set(run);
    const part: Level = {
      boxes: run.map((id) => boxOf.get(id) ?? { id }),
      arrows: level.arrows.filter((one) => own.has(one.source) && own.has(one.target)),
    };
    const laid = wrapRows(part, layered(part, sizes), sizes);
    done.set(shown(run[0] as string), laid);
    known.set(shown(run[0] as string), { width: laid.width + RUN_PAD, height: laid.height });
  }
  const lift = (id: string) => {
    const laid = done.get(shown(id));
    return laid ? (laid.positions.get(id)?.y ?? 0) + (sizes.get(id)?.height ?? 0) / 2 - laid.height / 2 : 0;
  };
  const seen = new Set<string>();
  const outer: Level = { boxes: [], arrows: [] };
  for (const box of level.boxes) {
    if (seen.has(shown(box.id))) continue;
    seen.add(shown(box.id));
    outer.boxes.push({ ...box, id: shown(box.id) });
  }
  for (const arrow of level.arrows) {
    const [source, target] = [shown(arrow.source), shown(arrow.target)];
    if (source === target) continue;
    outer.arrows.push({
      ...arrow,
      ...{ source, target },
      fromOffset: (arrow.fromOffset ?? 0) + lift(arrow.source),
      toOffset: (arrow.toOffset ?? 0) + lift(arrow.target),
    });
  }
  const { positions, waypoints: routes, width, height } = wrapRows(outer, layered(outer, known), known);
  for (const [id, laid] of done) {
    const at = positions.get(id) ?? { x: 0, y: 0 };
    positions.delete(id);
    place(laid, { x: at.x + RUN_PAD, y: at.y }, positions, routes);
  }
  return { positions, waypoints: routes, width, height };
}

/** Runs: chains of boxes in which each box has exactly one successor, longer than a row. Back arrows are ignored. */
function runsOf(level: Level, sizes: Sizes): string[][] {
  const { order, forward } = flowDirection(level);
  const [next, before] = [groupByEnd(forward, "source"), groupByEnd(forward, "target")];
  const onlyNext = (id: string) => {
    const [leads, after] = [next.get(id) ?? [], next.get(id)?.[0]?.target];
    return leads.length === 1 && after !== undefined && before.get(after)?.length === 1 ? after : undefined;
  };
  const met = new Set<string>();
  const found: string[][] = [];
  for (const id of order) {
    const run: string[] = [];
    let [width, height] = [0, 0];
    for (let at: string | undefined = id; at !== undefined && !met.has(at); at = onlyNext(at)) {
      met.add(at);
      run.push(at);
      width += (sizes.get(at)?.width ?? 0) + GAP_X;
      height = Math.max(height, sizes.get(at)?.height ?? 0);
    }
    if (isLong({ width, height }) && run.length < order.length) found.push(run);
  }
  return found;
}
