/** What arrows go around: boxes and frames that they do not belong to. */

import type { Frame } from "@/graph/layout/frames";
import type { Point } from "@/graph/layout/geometry";
import { BOX, meets, type Rect } from "@/graph/layout/geometry";
import { piecesOf } from "./paths";
import { SpatialGrid } from "./spatialGrid";

export interface Obstacle extends Rect {
  /** Null: it is a frame. */
  box: string | null;
  members: ReadonlySet<string> | null;
}

export interface Ends {
  source: string;
  target: string;
}

/** An arrow keeps so far away from what it passes. */
const NEAR = 4;

export class Obstacles {
  private readonly boxes: SpatialGrid<Obstacle>;
  private readonly frames: SpatialGrid<Obstacle>;
  private readonly places: ReadonlyMap<string, Point>;
  /** All of them: boxes and frames. */
  readonly all: readonly Obstacle[];
  /** Where was looked since somebody began to take note. */
  looked: Rect[] = [];

  constructor(places: ReadonlyMap<string, Point>, frames: readonly Frame[]) {
    this.places = places;
    const boxes = [...places].map(([box, at]) => ({ x: at.x, y: at.y, ...BOX, box, members: null }));
    const framed = frames.map(({ x, y, width, height, region: group }) => ({
      ...{ x, y, width, height },
      box: null,
      members: new Set(group.members),
    }));
    this.boxes = new SpatialGrid<Obstacle>(boxes);
    this.frames = new SpatialGrid<Obstacle>(framed);
    this.all = [...boxes, ...framed];
  }

  /** Those a line by these points would cross or come too near to; its own two boxes among them. */
  crossedBy(points: readonly Point[], ends: Ends, isOverFrames = false): Obstacle[] {
    const found = new Set<Obstacle>();
    for (let at = 1; at < points.length; at++)
      for (const piece of piecesOf(points[at - 1] as Point, points[at] as Point)) {
        this.looked.push(piece);
        for (const one of this.boxes.near(piece, NEAR))
          if ((one.box !== ends.source && one.box !== ends.target) || meets(one, piece, -1)) found.add(one);
        if (isOverFrames) continue;
        for (const one of this.frames.near(piece, NEAR))
          if (!found.has(one) && this.isForeign(one, ends)) found.add(one);
      }
    return [...found];
  }

  /** Boxes at a place. */
  at(point: Point, room: number): Obstacle[] {
    const spot = { ...point, width: 0, height: 0 };
    this.looked.push(spot);
    return this.boxes.near(spot, room);
  }

  ownOf(ends: Ends): Obstacle[] {
    return [ends.source, ends.target].flatMap((box) => {
      const at = this.places.get(box);
      return at ? [{ x: at.x, y: at.y, ...BOX, box, members: null }] : [];
    });
  }

  /** A frame in which one of the ends stands, whether it belongs there or was put there, is no obstacle. */
  private isForeign({ members, ...frame }: Obstacle, { source, target }: Ends): boolean {
    if (members?.has(source) || members?.has(target)) return false;
    return [source, target].every((id) => {
      const at = this.places.get(id);
      return !at || !meets(frame, { ...at, ...BOX });
    });
  }
}
