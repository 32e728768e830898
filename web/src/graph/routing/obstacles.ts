/** Obstacles of arrows: boxes, and frames that contain neither end of the arrow. */

import type { Frame } from "@/graph/layout/frames";
import type { Point } from "@/graph/layout/geometry";
import { BOX, overlaps, type Rect } from "@/graph/layout/geometry";
import { piecesOf } from "./paths";
import { SpatialGrid } from "./spatialGrid";

export interface Obstacle extends Rect {
  /** Id of the box; null for a frame. */
  box: string | null;
  members: ReadonlySet<string> | null;
}

export interface Ends {
  source: string;
  target: string;
}

/** Minimum distance between an arrow and the obstacles that it passes. */
const CLEARANCE = 4;

export class Obstacles {
  private readonly boxes: SpatialGrid<Obstacle>;
  private readonly frames: SpatialGrid<Obstacle>;
  private readonly positions: ReadonlyMap<string, Point>;
  /** Boxes and frames. */
  readonly all: readonly Obstacle[];
  /** Areas inspected since the caller last reset this list; the route cache uses them to decide what to invalidate. */
  inspected: Rect[] = [];

  constructor(positions: ReadonlyMap<string, Point>, frames: readonly Frame[]) {
    this.positions = positions;
    const boxes = [...positions].map(([box, at]) => ({ x: at.x, y: at.y, ...BOX, box, members: null }));
    const framed = frames.map(({ x, y, width, height, region: group }) => ({
      ...{ x, y, width, height },
      box: null,
      members: new Set(group.members),
    }));
    this.boxes = new SpatialGrid<Obstacle>(boxes);
    this.frames = new SpatialGrid<Obstacle>(framed);
    this.all = [...boxes, ...framed];
  }

  /**
   * Obstacles that a line through these points would cross or approach too closely, including the two boxes at its
   * ends.
   */
  crossedBy(points: readonly Point[], ends: Ends, isOverFrames = false): Obstacle[] {
    const found = new Set<Obstacle>();
    for (let at = 1; at < points.length; at++)
      for (const piece of piecesOf(points[at - 1] as Point, points[at] as Point)) {
        this.inspected.push(piece);
        for (const one of this.boxes.near(piece, CLEARANCE))
          if ((one.box !== ends.source && one.box !== ends.target) || overlaps(one, piece, -1)) found.add(one);
        if (isOverFrames) continue;
        for (const one of this.frames.near(piece, CLEARANCE))
          if (!found.has(one) && this.isForeign(one, ends)) found.add(one);
      }
    return [...found];
  }

  /** Boxes within `room` of a point. */
  at(point: Point, room: number): Obstacle[] {
    const spot = { ...point, width: 0, height: 0 };
    this.inspected.push(spot);
    return this.boxes.near(spot, room);
  }

  endBoxesOf(ends: Ends): Obstacle[] {
    return [ends.source, ends.target].flatMap((box) => {
      const at = this.positions.get(box);
      return at ? [{ x: at.x, y: at.y, ...BOX, box, members: null }] : [];
    });
  }

  /** A frame is an obstacle only if neither end is a member of it or positioned inside it. */
  private isForeign({ members, ...frame }: Obstacle, { source, target }: Ends): boolean {
    if (members?.has(source) || members?.has(target)) return false;
    return [source, target].every((id) => {
      const at = this.positions.get(id);
      return !at || !overlaps(frame, { ...at, ...BOX });
    });
  }
}
