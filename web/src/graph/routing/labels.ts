/**
 * Label positions: on the line of the arrow, without overlapping boxes or other labels, truncated where space is short.
 */

import type { Frame } from "@/graph/layout/frames";
import type { Point } from "@/graph/layout/geometry";
import { BOX, type Rect } from "@/graph/layout/geometry";
import { LABEL, widthOf } from "@/graph/layout/labelWidth";
import { isStraight, pointOn } from "./paths";
import { SpatialGrid } from "./spatialGrid";

/** Centre and size of a label. Width 0: it does not fit. */
export interface Label extends Rect {}

const ROOM = 4;
/** Area of the title in the corner of a frame. */
const FRAME_NAME = { x: 6, y: 4, width: 120, height: 24 } as const;
const SHARES = [0.5, 0.35, 0.65, 0.2, 0.8] as const;
/** Tried if no label fits at the others. */
const MORE_SHARES = [0.1, 0.9, 0.28, 0.72, 0.42, 0.58, 0.05, 0.95] as const;

export class Labels {
  private readonly ground = new SpatialGrid<Rect>();

  constructor(positions: ReadonlyMap<string, Point>, frames: readonly Frame[]) {
    for (const at of positions.values()) this.ground.add({ x: at.x, y: at.y, ...BOX });
    for (const { x, y } of frames) this.ground.add({ ...FRAME_NAME, x: x + FRAME_NAME.x, y: y + FRAME_NAME.y });
  }

  /** Reserve and return the widest available position on the line. */
  place(words: string, points: readonly Point[]): Label {
    const wanted = widthOf(words);
    let best: Label = { ...anchorOf(points), width: 0 };
    for (const at of candidates(points)) {
      const width = Math.min(wanted, this.roomAt(at, wanted));
      if (width > best.width && width >= Math.min(wanted, LABEL.least)) best = { ...at, width, height: LABEL.height };
      if (width === wanted) break;
    }
    if (best.width > 0)
      this.ground.add({
        x: best.x - best.width / 2,
        y: best.y - LABEL.height / 2,
        width: best.width,
        height: LABEL.height,
      });
    return best;
  }

  /** Maximum width of a label centred at this point. */
  private roomAt(at: Point, wanted: number): number {
    const band = { x: at.x - wanted / 2, y: at.y - LABEL.height / 2, width: wanted, height: LABEL.height };
    let half = wanted / 2;
    for (const one of this.ground.near(band, ROOM)) {
      const [left, right] = [at.x - (one.x + one.width), one.x - at.x];
      half = Math.min(half, Math.max(left, right) - ROOM);
    }
    return Math.floor(2 * half);
  }
}

/** Preferred label position, regardless of other elements. */
export function anchorOf(points: readonly Point[]): Label {
  const [at] = candidates(points);
  return { ...(at ?? points[0] ?? { x: 0, y: 0 }), width: 0, height: 0 };
}

/** Candidate points on the longest parts first; horizontal parts are preferred to vertical ones. */
function* candidates(points: readonly Point[]): Generator<Point> {
  const parts = points.slice(1).map((to, at) => {
    const from = points[at] as Point;
    const length = Math.abs(to.x - from.x) + (isStraight(from, to) ? Math.abs(to.y - from.y) / 4 : 0);
    return { from, to, length };
  });
  parts.sort((a, b) => b.length - a.length);
  for (const shares of [SHARES, MORE_SHARES])
    for (const { from, to } of parts) for (const share of shares) yield pointOn(from, to, share);
}
