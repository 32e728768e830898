/** Geometry of the graph: the size of a box, points and rectangles, and the types that the stages of the layout exchange. */

/** All boxes have the same size, so that nothing is measured and a layout needs no page. */
export const BOX = { width: 208, height: 60 } as const;

export interface Point {
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

/** Upper left corners of the boxes, and the points that long arrows pass. */
export interface Layout {
  positions: Map<string, Point>;
  waypoints: Map<string, Point[]>;
}

/** One level: what stands on it and what leads from one to another there. */
export interface Level {
  boxes: {
    id: string;
    /** How high it stands now, where that is to stay. */
    stands?: number;
  }[];
  arrows: LevelArrow[];
}

export interface LevelArrow {
  id: string;
  source: string;
  target: string;
  /** So much room its words need. */
  room?: number;
  /** It leads away from the main line. */
  isAside?: boolean;
  /** Where it leaves and where it ends, from the middle of what it leaves and of what it leads to. */
  from?: number;
  to?: number;
}

export interface Rect extends Point, Size {}

/** From one thing in a column to one in a neighbouring column. */
export interface Link {
  to: string;
  weight: number;
  /** So much lower than the other one it stands, if the arrow is level: an arrow may end anywhere on a frame. */
  lift: number;
}

export function meets(one: Rect, other: Rect, room = 0): boolean {
  return (
    one.x < other.x + other.width + room &&
    other.x < one.x + one.width + room &&
    one.y < other.y + other.height + room &&
    other.y < one.y + one.height + room
  );
}

/** The rectangle that two points span. */
export function between(a: Point, b: Point): Rect {
  return { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
}

/** The smallest that holds all. Nothing: null. */
export function around(rects: Iterable<Rect>): Rect | null {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const one of rects) {
    left = Math.min(left, one.x);
    top = Math.min(top, one.y);
    right = Math.max(right, one.x + one.width);
    bottom = Math.max(bottom, one.y + one.height);
  }
  return left === Infinity ? null : { x: left, y: top, width: right - left, height: bottom - top };
}
