/**
 * Shortest detour around obstacles, made of horizontal and vertical parts with few bends.
 * grid lines along all sides of the obstacles and through both ends ─▶ grid cells ─▶ cheapest path (A*)
 */
import type { Point, Rect } from "@/graph/layout/geometry";

/** Cost of a bend, as additional path length. */
const BEND = 48;

/** Budget in visited cells, shared by all detours of a picture, so that the picture appears without delay. */
export interface Effort {
  left: number;
}

/** Route from `from` to `to`, leaving and arriving rightwards. Null if none exists or the budget is used up. */
export function detour(from: Point, to: Point, obstacles: readonly Rect[], effort: Effort): Point[] | null {
  const xs = sorted([from.x, to.x, ...obstacles.flatMap((one) => [one.x, one.x + one.width])]);
  const ys = sorted([from.y, to.y, ...obstacles.flatMap((one) => [one.y, one.y + one.height])]);
  const blocked = blockedIn(xs, ys, obstacles);
  effort.left -= (xs.length * ys.length) >> 2;
  const [width, goal] = [xs.length, ys.indexOf(to.y) * xs.length + xs.indexOf(to.x)];
  // A state is a cell and the direction of arrival: twice the cell index, plus 1 if vertical.
  const cost = new Float64Array(width * ys.length * 2).fill(Number.POSITIVE_INFINITY);
  const previous = new Int32Array(width * ys.length * 2).fill(-1);
  const left = (cell: number) =>
    Math.abs((xs[cell % width] as number) - to.x) + Math.abs((ys[Math.floor(cell / width)] as number) - to.y);
  const open = new Heap();
  const start = (ys.indexOf(from.y) * width + xs.indexOf(from.x)) * 2;
  cost[start] = 0;
  open.push(start, left(start >> 1));
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    if (effort.left-- <= 0) return null;
    const place = state >> 1;
    if (place === goal) return pathTo(state, previous, xs, ys);
    const [x, y] = [place % width, Math.floor(place / width)];
    const visit = (nextX: number, nextY: number, upright: 0 | 1) => {
      const next = (nextY * width + nextX) * 2 + upright;
      const far =
        Math.abs((xs[nextX] as number) - (xs[x] as number)) + Math.abs((ys[nextY] as number) - (ys[y] as number));
      const sum = (cost[state] as number) + far + ((state & 1) === upright ? 0 : BEND);
      if (sum >= (cost[next] as number)) return;
      cost[next] = sum;
      previous[next] = state;
      // Arriving vertically costs one more bend at the end.
      open.push(next, sum + left(next >> 1) + (upright === 1 ? BEND : 0));
    };
    const previousState = previous[state] as number;
    const isBack = (next: number) => previousState >= 0 && previousState >> 1 === next;
    if (x + 1 < width && !blocked.level[y * width + x]) visit(x + 1, y, 0);
    // The first part leads away from its box and the last one into its box. A path never reverses directly.
    if (x > 0 && !blocked.level[y * width + x - 1] && state !== start && place - 1 !== goal && !isBack(place - 1))
      visit(x - 1, y, 0);
    if (y + 1 < ys.length && !blocked.upright[y * width + x]) visit(x, y + 1, 1);
    if (y > 0 && !blocked.upright[(y - 1) * width + x]) visit(x, y - 1, 1);
  }
  return null;
}

function sorted(values: number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

/** Grid steps that cross an obstacle: from a cell to its right neighbour (`level`) and to the one below (`upright`). */
function blockedIn(xs: readonly number[], ys: readonly number[], obstacles: readonly Rect[]) {
  const width = xs.length;
  const level = new Uint8Array(width * ys.length);
  const upright = new Uint8Array(width * ys.length);
  const rank = (values: readonly number[]) => new Map(values.map((value, at) => [value, at]));
  const [column, row] = [rank(xs), rank(ys)];
  for (const one of obstacles) {
    const [left, right] = [column.get(one.x) ?? 0, column.get(one.x + one.width) ?? 0];
    const [top, bottom] = [row.get(one.y) ?? 0, row.get(one.y + one.height) ?? 0];
    for (let y = top; y <= bottom; y++)
      for (let x = left; x <= right; x++) {
        if (x < right && y > top && y < bottom) level[y * width + x] = 1;
        if (y < bottom && x > left && x < right) upright[y * width + x] = 1;
      }
  }
  return { level, upright };
}

function pathTo(end: number, came: Int32Array, xs: readonly number[], ys: readonly number[]): Point[] {
  const found: Point[] = [];
  for (let state = end; state >= 0; state = came[state] as number) {
    const place = state >> 1;
    found.push({ x: xs[place % xs.length] as number, y: ys[Math.floor(place / xs.length)] as number });
  }
  return found.reverse();
}

/** Priority queue: lowest cost first. */
class Heap {
  private readonly states: number[] = [];
  private readonly costs: number[] = [];

  push(state: number, cost: number): void {
    let at = this.states.length;
    this.states.push(state);
    this.costs.push(cost);
    for (let up = (at - 1) >> 1; at > 0 && (this.costs[up] as number) > cost; up = (at - 1) >> 1) {
      this.swap(at, up);
      at = up;
    }
  }

  pop(): number | undefined {
    const first = this.states[0];
    const [state, cost] = [this.states.pop(), this.costs.pop()];
    if (state === undefined || cost === undefined || this.states.length === 0) return first;
    this.states[0] = state;
    this.costs[0] = cost;
    for (let at = 0; ; ) {
      let least = at;
      for (const down of [2 * at + 1, 2 * at + 2])
        if (down < this.costs.length && (this.costs[down] as number) < (this.costs[least] as number)) least = down;
      if (least === at) return first;
      this.swap(at, least);
      at = least;
    }
  }

  private swap(a: number, b: number): void {
    [this.states[a], this.states[b]] = [this.states[b] as number, this.states[a] as number];
    [this.costs[a], this.costs[b]] = [this.costs[b] as number, this.costs[a] as number];
  }
}
