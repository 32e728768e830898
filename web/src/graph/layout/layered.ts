/**
 * Layered layout: successors are placed in columns to the right.
 * columns by longest path (back arrows are ignored) ─▶ a slot in each column that a long arrow passes ─▶ order within
 * columns ─▶ vertical positions ─▶ space between columns for labels
 */

import { adjacencyOf, flowOrder } from "@/graph/model/adjacency";
import type { Layout, Level, LevelArrow, Link, Point, Size } from "./geometry";
import { heightsOf } from "./heights";
import { orderLayers } from "./order";

type ArrowsByNode = Map<string, LevelArrow[]>;

export const GAP_X = 64;
const SLOT = 22;
/** Space between a label and the boxes beside it. */
const LABEL_MARGIN = 32;
/** Weights for straightening: long arrows first, then arrows that continue the main line, then side branches. */
const WEIGHT = { slots: 16, only: 9, onward: 4, aside: 1 } as const;

/** Top left corners, starting at 0,0, and the size of the whole. */
export function layered(level: Level, sizes: ReadonlyMap<string, Size>): Layout & Size {
  const { order, forward } = flowDirection(level);
  const leading = groupByEnd(forward, "source");
  const column = columnsOf(order, leading);
  const { before, after, slots } = linksOf(forward, leading, column);
  const layers = orderLayers(fillColumns(level, order, leading, column, slots), before, after);
  const height = (id: string) => sizes.get(id)?.height ?? SLOT;
  const middle = heightsOf(layers, before, after, height);
  const { lefts, widths, width } = columnPositions(layers, sizes, labelSpaceAfter(forward, column));
  const positions = new Map<string, Point>();
  let [top, bottom] = [Number.POSITIVE_INFINITY, 0];
  for (const { id } of level.boxes) top = Math.min(top, (middle.get(id) ?? 0) - height(id) / 2);
  for (const { id } of level.boxes) {
    const y = Math.round((middle.get(id) ?? 0) - height(id) / 2 - top);
    positions.set(id, { x: lefts[column.get(id) ?? 0] ?? 0, y });
    bottom = Math.max(bottom, y + height(id));
  }
  const routes = new Map<string, Point[]>();
  for (const arrow of forward) {
    const from = column.get(arrow.source) ?? 0;
    const across = (at: number, y: number, begin: number) => [
      { x: (lefts[at] ?? 0) + begin, y },
      { x: (lefts[at] ?? 0) + (widths[at] ?? 0), y },
    ];
    const own = sizes.get(arrow.source)?.width ?? 0;
    // An arrow from a narrow box stays horizontal until it has left the column, because a wider element may be above or
    // below.
    const leaves = (positions.get(arrow.source)?.y ?? 0) + height(arrow.source) / 2 + (arrow.fromOffset ?? 0);
    const begin = own < (widths[from] ?? 0) ? across(from, leaves, own).slice(1) : [];
    const passed = (slots.get(arrow.id) ?? []).flatMap((slot, at) =>
      across(from + 1 + at, Math.round((middle.get(slot) ?? 0) - top), 0),
    );
    if (begin.length + passed.length > 0) routes.set(arrow.id, [...begin, ...passed]);
  }
  return { positions, waypoints: routes, width, height: bottom };
}

/** The flow order of the nodes, and the arrows without back arrows. */
export function flowDirection(level: Level): { order: string[]; forward: LevelArrow[] } {
  const ids = level.boxes.map((box) => box.id);
  const order = flowOrder(adjacencyOf(ids, level.arrows));
  const rank = new Map(order.map((id, at) => [id, at]));
  const forward = level.arrows.filter(({ source, target }) => (rank.get(source) ?? 0) < (rank.get(target) ?? 0));
  return { order, forward };
}

function columnsOf(order: readonly string[], leading: ArrowsByNode): Map<string, number> {
  const column = new Map(order.map((id) => [id, 0]));
  const entered = new Set<string>();
  for (const id of order)
    for (const { target } of leading.get(id) ?? []) {
      entered.add(target);
      column.set(target, Math.max(column.get(target) ?? 0, (column.get(id) ?? 0) + 1));
    }
  // A node without predecessors is placed directly before its first successor.
  for (const id of order) {
    const next = leading.get(id) ?? [];
    if (entered.has(id) || next.length === 0) continue;
    column.set(id, Math.min(...next.map(({ target }) => column.get(target) ?? 0)) - 1);
  }
  return column;
}

/** Label space needed behind each column, for arrows to the next column. */
function labelSpaceAfter(forward: readonly LevelArrow[], column: ReadonlyMap<string, number>): number[] {
  const found: number[] = [];
  for (const { source, target, labelSpace: room = 0 } of forward) {
    const from = column.get(source) ?? 0;
    if ((column.get(target) ?? 0) === from + 1) found[from] = Math.max(found[from] ?? 0, room);
  }
  return found;
}

function columnPositions(layers: readonly string[][], sizes: ReadonlyMap<string, Size>, words: readonly number[]) {
  const widths = layers.map((layer) => Math.max(0, ...layer.map((id) => sizes.get(id)?.width ?? 0)));
  const lefts: number[] = [];
  let [x, right] = [0, 0];
  widths.forEach((width, at) => {
    lefts.push(x);
    right = x + width;
    x = right + Math.max(GAP_X, (words[at] ?? 0) + LABEL_MARGIN);
  });
  return { lefts, widths, width: right };
}

/** Links between neighbouring columns; a long arrow is linked through its slots. */
function linksOf(forward: readonly LevelArrow[], leading: ArrowsByNode, column: ReadonlyMap<string, number>) {
  const before = new Map<string, Link[]>();
  const after = new Map<string, Link[]>();
  const slots = new Map<string, string[]>();
  const link = (source: string, target: string, weight: number, from = 0, to = 0) => {
    push(after, source, { to: target, weight, offset: to - from });
    push(before, target, { to: source, weight, offset: from - to });
  };
  const reaching = groupByEnd(forward, "target");
  for (const { id, source, target, fromOffset: from, toOffset: to, isSideBranch } of forward) {
    const [first, last] = [column.get(source) ?? 0, column.get(target) ?? 0];
    const passed = Array.from({ length: last - first - 1 }, (_, at) => `${id}\n${first + 1 + at}`);
    slots.set(id, passed);
    const [next, end] = [passed[0], passed.at(-1)];
    if (next !== undefined && end !== undefined) {
      link(source, next, WEIGHT.aside, from);
      for (let at = 1; at < passed.length; at++) link(passed[at - 1] as string, passed[at] as string, WEIGHT.slots);
      link(end, target, WEIGHT.aside, 0, to);
    } else {
      const isOnly = leading.get(source)?.length === 1 && reaching.get(target)?.length === 1;
      link(source, target, isSideBranch ? WEIGHT.aside : isOnly ? WEIGHT.only : WEIGHT.onward, from, to);
    }
  }
  return { before, after, slots };
}

/**
 * Elements of each column, including slots: in flow order, branch by branch, or in their present vertical order if all
 * positions are known.
 */
function fillColumns(
  level: Level,
  order: readonly string[],
  leading: ArrowsByNode,
  column: ReadonlyMap<string, number>,
  slots: ReadonlyMap<string, string[]>,
): string[][] {
  const layers: string[][] = [];
  const stands = new Map<string, number>(
    level.boxes.flatMap(({ id, currentY }) => (currentY === undefined ? [] : [[id, currentY]])),
  );
  const put = (id: string, at: number) => {
    while (layers.length <= at) layers.push([]);
    layers[at]?.push(id);
  };
  for (const id of order) {
    put(id, column.get(id) ?? 0);
    for (const arrow of leading.get(id) ?? []) {
      const passed = slots.get(arrow.id) ?? [];
      passed.forEach((slot, at) => {
        put(slot, (column.get(id) ?? 0) + 1 + at);
        const [from, to] = [stands.get(arrow.source), stands.get(arrow.target)];
        if (from !== undefined && to !== undefined) stands.set(slot, at * 2 < passed.length ? from : to);
      });
    }
  }
  for (const layer of layers)
    if (layer.every((id) => stands.has(id))) layer.sort((a, b) => (stands.get(a) ?? 0) - (stands.get(b) ?? 0));
  return layers;
}

export function groupByEnd(arrows: readonly LevelArrow[], end: "source" | "target"): ArrowsByNode {
  const found = new Map<string, LevelArrow[]>();
  for (const arrow of arrows) push(found, arrow[end], arrow);
  return found;
}

function push<T>(all: Map<string, T[]>, key: string, one: T): void {
  const known = all.get(key);
  if (known) known.push(one);
  else all.set(key, [one]);
}
