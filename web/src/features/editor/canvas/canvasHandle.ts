/** The canvas as the other parts of the editor use it: where nodes are, and how to bring them into view. */
import type { Point } from "@/graph/layout/geometry";
import { focusPicked } from "../document/pointers";
import type { Picked } from "./selection";

/** What the canvas that is on the screen offers. */
export interface CanvasView {
  element: HTMLElement | null;
  /** The position of every node, from the document or from the layout. */
  positions: ReadonlyMap<string, Point>;
  picked: Picked | null;
  /** The middle of what is visible, in coordinates of the graph. */
  middle: () => Point;
  reveal: (ids: readonly string[]) => void;
  showAll: () => void;
}

const NO_VIEW: CanvasView = {
  element: null,
  positions: new Map(),
  picked: null,
  middle: () => ({ x: 0, y: 0 }),
  reveal: () => undefined,
  showAll: () => undefined,
};

export class CanvasHandle {
  private view: CanvasView = NO_VIEW;
  /** The node that a canvas shows first when it appears; null: the beginning of the workflow. */
  wanted: string | null = null;
  /** The user opened the outline by its key, so the outline takes the focus. */
  isOutlineWanted = false;

  /** Called by the canvas after each render. */
  attach(view: CanvasView): void {
    this.view = view;
  }

  places(): ReadonlyMap<string, Point> {
    return this.view.positions;
  }

  middle(): Point {
    return this.view.middle();
  }

  /** Scrolls to nodes that are out of view, once the next frame has drawn them. Without ids: shows all. */
  reveal(ids: readonly string[]): void {
    requestAnimationFrame(() => (ids.length === 0 ? this.view.showAll() : this.view.reveal(ids)));
  }

  /** Reveals a node now, or when the canvas appears. */
  bring(id: string): void {
    this.wanted = id;
    this.reveal([id]);
  }

  focus(): void {
    focusPicked(this.view.element, () => this.view.picked);
  }
}
