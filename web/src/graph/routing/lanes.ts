/** Index of straight line parts by lane: a lookup beside a long part costs as much as beside a short one. */
import { overlaps, type Rect } from "@/graph/layout/geometry";

/** A horizontal or vertical segment: one of its dimensions is 0. */
export interface Straight extends Rect {
  isLevel: boolean;
}

export class Lanes<T extends Straight> {
  private readonly level = new Map<number, T[]>();
  private readonly upright = new Map<number, T[]>();
  /** Two parts nearer than this are neighbours. */
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

  /** Whether a parallel part within `room` of `part` satisfies the predicate. */
  hasBeside(part: Straight, matches: (one: T) => boolean): boolean {
    const [lanes, lane] = [this.of(part), this.laneOf(part)];
    for (let next = lane - 1; next <= lane + 1; next++)
      if (lanes.get(next)?.some((one) => matches(one) && overlaps(one, part, this.room))) return true;
    return false;
  }

  private of(part: Straight): Map<number, T[]> {
    return part.isLevel ? this.level : this.upright;
  }

  private laneOf(part: Straight): number {
    return Math.floor((part.isLevel ? part.y : part.x) / this.room);
  }
}
