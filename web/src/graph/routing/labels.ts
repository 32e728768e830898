/** Where the words of arrows stand: on their lines, upon no box and no other words; shorter where there is little room. */

import type { Frame } from "@/graph/layout/frames";
import type { Point } from "@/graph/layout/geometry";
import { BOX, type Rect } from "@/graph/layout/geometry";
import { LABEL, widthOf } from "@/graph/layout/labelWidth";
import { isStraight, pointOn } from "./paths";
import { SpatialGrid } from "./spatialGrid";

/** The middle of the words. A width of 0: there is no room for any. */
export interface Label extends Rect {}

const ROOM = 4;
/** The name of a frame stands in its corner. */
const NAME = { x: 6, y: 4, width: 120, height: 24 } as const;
const SHARES = [0.5, 0.35, 0.65, 0.2, 0.8] as const;

export class Labels {
  private readonly ground = new SpatialGrid<Rect>();

  constructor(places: ReadonlyMap<string, Point>, frames: readonly Frame[]) {
    for (const at of places.values()) this.ground.add({ x: at.x, y: at.y, ...BOX });
    for (const { x, y } of frames) this.ground.add({ ...NAME, x: x + NAME.x, y: y + NAME.y });
  }

  /** The best place on the line that is left; taken from then on. */
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

  /** How wide something may be whose middle is there. */
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

/** Where words would stand if nothing else did. */
export function anchorOf(points: readonly Point[]): Label {
  const [at] = candidates(points);
  return { ...(at ?? points[0] ?? { x: 0, y: 0 }), width: 0, height: 0 };
}

/** On the longest part first, on level ones rather than on upright ones. */
function* candidates(points: readonly Point[]): Generator<Point> {
  const parts = points.slice(1).map((to, at) => {
    const from = points[at] as Point;
    const length = Math.abs(to.x - from.x) + (isStraight(from, to) ? Math.abs(to.y - from.y) / 4 : 0);
    return { from, to, length };
  });
  parts.sort((a, b) => b.length - a.length);
  for (const { from, to } of parts) for (const share of SHARES) yield pointOn(from, to, share);
}
