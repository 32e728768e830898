/** Spatial index: finds rectangles near a rectangle by the grid squares that they cover. */

import { overlaps, type Rect } from "@/graph/layout/geometry";

const SQUARE = 256;
/**
 * Coordinates come from untrusted documents: everything beyond this square index is stored in the outermost squares.
 */
const OUTERMOST = 30_000;
/** Rectangles that cover more squares than this are stored in a separate list, which every lookup checks. */
const SQUARES_MAX = 256;

export class SpatialGrid<T extends Rect> {
  private readonly squares = new Map<number, T[]>();
  private readonly wide: T[] = [];
  private readonly all: T[] = [];

  constructor(things: Iterable<T> = []) {
    for (const thing of things) this.add(thing);
  }

  add(thing: T): void {
    this.all.push(thing);
    const { left, top, right, bottom } = squaresOf(thing, 0);
    if ((right - left + 1) * (bottom - top + 1) > SQUARES_MAX) {
      this.wide.push(thing);
      return;
    }
    for (let x = left; x <= right; x++)
      for (let y = top; y <= bottom; y++) {
        const square = this.squares.get(x * 65_536 + y);
        if (square) square.push(thing);
        else this.squares.set(x * 65_536 + y, [thing]);
      }
  }

  /** All rectangles nearer than `room` to `rect`, without duplicates. Touching is not near. */
  near(rect: Rect, room = 0): T[] {
    const { left, top, right, bottom } = squaresOf(rect, room);
    const found = new Set<T>();
    const look = (things: readonly T[]) => {
      for (const one of things) if (overlaps(one, rect, room)) found.add(one);
    };
    if ((right - left + 1) * (bottom - top + 1) > this.all.length) {
      look(this.all);
      return [...found];
    }
    for (let x = left; x <= right; x++)
      for (let y = top; y <= bottom; y++) {
        const square = this.squares.get(x * 65_536 + y);
        if (square) look(square);
      }
    look(this.wide);
    return [...found];
  }
}

function squaresOf(rect: Rect, room: number) {
  const square = (at: number) => Math.max(-OUTERMOST, Math.min(OUTERMOST, Math.floor(at / SQUARE)));
  return {
    left: square(rect.x - room),
    top: square(rect.y - room),
    right: square(rect.x + rect.width + room),
    bottom: square(rect.y + rect.height + room),
  };
}
