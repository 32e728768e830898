/** The canvas as the other parts of the editor know it: where things stand, and how to bring them into sight. */
import type { Point } from "@/graph/quickLayout";

export class Stage {
  /** Where every node stands, placed by its author or laid out. */
  places: () => ReadonlyMap<string, Point> = () => new Map();
  /** Where a new node may be put: the middle of what is seen. */
  middle: () => Point = () => ({ x: 0, y: 0 });
  /** Moves there what is out of sight. */
  reveal: (ids: readonly string[]) => void = () => undefined;
  /** Comes into sight now, or as soon as the canvas is there. */
  bring(id: string): void {
    this.wanted = id;
    this.reveal([id]);
  }
  /** What a canvas that has just appeared shows first; null: where the workflow begins. */
  wanted: string | null = null;
  focus: () => void = () => undefined;
  /** Somebody asked for the outline by its key and wants to go on there. */
  isOutlineWanted = false;
}
