/** Geometry of the graph: box size, points and rectangles, and the types that the layout stages exchange. */

/** All boxes have the same size, so that the layout needs neither the DOM nor measurements. */
export const BOX = { width: 208, height: 60 } as const;

/** Distance of a port from the middle of its box. */
export const portOffset = (port?: { nth: number; count: number }): number =>
  port ? ((port.nth + 0.5) / port.count - 0.5) * BOX.height : 0;

export interface Point {
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Top left corners of the boxes, and the points that long arrows pass. */
export interface Layout {
  positions: Map<string, Point>;
  waypoints: Map<string, Point[]>;
}

/** One nesting level: its boxes and the arrows between them. */
export interface Level {
  boxes: {
    id: string;
    /** Present y position, if it should be preserved. */
    currentY?: number;
  }[];
  arrows: LevelArrow[];
}

export interface LevelArrow {
  id: string;
  source: string;
  target: string;
  /** Width that the label needs. */
  labelSpace?: number;
  /** The arrow leads away from the main line. */
  isSideBranch?: boolean;
  /** Vertical offsets of the two ends from the centres of the source and the target. */
  fromOffset?: number;
  toOffset?: number;
}

export interface Rect extends Point, Size {}

/** A link from an element in one column to an element in a neighbouring column. */
export interface Link {
  to: string;
  weight: number;
  /** Vertical offset at which the arrow is horizontal: an arrow may end anywhere on a frame. */
  offset: number;
}

export function overlaps(one: Rect, other: Rect, room = 0): boolean {
  return (
    one.x < other.x + other.width + room &&
    other.x < one.x + one.width + room &&
    one.y < other.y + other.height + room &&
    other.y < one.y + one.height + room
  );
}

/** The rectangle spanned by two points. */
export function spanOf(a: Point, b: Point): Rect {
  return { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
}

/** The smallest rectangle that contains all; null if there are none. */
export function boundingRect(rects: Iterable<Rect>): Rect | null {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const one of rects) {
    left = Math.min(left, one.x);
    top = Math.min(top, one.y);
    right = Math.max(right, one.x + one.width);
    bottom = Math.max(bottom, one.y + one.height);
  }
  return left === Infinity ? null : { x: left, y: top, width: right - left, height: bottom - top };
}
