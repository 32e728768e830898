/** Straight parts of lines, found by the lane they lie in: a long one is as fast to look beside as a short one. */
import { meets, type Rect } from "@/graph/layout/geometry";

/** Level or upright, and without any breadth. */
export interface Straight extends Rect {
  isLevel: boolean;
}

export class Lanes<T extends Straight> {
  private readonly level = new Map<number, T[]>();
  private readonly upright = new Map<number, T[]>();
  /** How near to each other two parts are beside one another. */
  private readonly room: number;

  constructor(room: number) {
    this.room = room;
  }

  add(part: T): void {
    const [lanes, lane] = [this.of(part), this.laneOf(part)];
    const there = lanes.get(lane);
    if (there) there.push(part);
    else lanes.set(lane, [part]);
  }

  /** Whether one that is as level, nearer than `room`, is so. */
  hasBeside(part: Straight, isSo: (one: T) => boolean): boolean {
    const [lanes, lane] = [this.of(part), this.laneOf(part)];
    for (let next = lane - 1; next <= lane + 1; next++)
      if (lanes.get(next)?.some((one) => isSo(one) && meets(one, part, this.room))) return true;
    return false;
  }

  private of(part: Straight): Map<number, T[]> {
    return part.isLevel ? this.level : this.upright;
  }

  private laneOf(part: Straight): number {
    return Math.floor((part.isLevel ? part.y : part.x) / this.room);
  }
}
