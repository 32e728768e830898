/** Handle of the canvas for other parts of the editor: node positions, and scrolling to nodes. */
import type { Point } from "@/graph/layout/geometry";
import { focusPicked } from "../document/pointers";
import type { Drawing } from "./drawing";
import type { Picked } from "./selection";

/** The functions of the mounted canvas. */
export interface CanvasView {
  element: HTMLElement | null;
  /** Position of every node, from the document or from the layout. */
  positions: ReadonlyMap<string, Point>;
  picked: Picked | null;
  /** Centre of the visible area, in graph coordinates. */
  middle: () => Point;
  reveal: (ids: readonly string[]) => void;
  showAll: () => void;
  drawing: Drawing;
}

const NO_VIEW: CanvasView = {
  element: null,
  positions: new Map(),
  picked: null,
  middle: () => ({ x: 0, y: 0 }),
  reveal: () => undefined,
  showAll: () => undefined,
  drawing: { add: () => undefined, connect: () => undefined },
};

export class CanvasHandle {
  private view: CanvasView = NO_VIEW;
  /** The node that the canvas shows when it is mounted; null: the beginning of the workflow. */
  initialNode: string | null = null;
  /** Whether the outline takes the focus, because the user opened it with its key. */
  focusOutline = false;

  /** Called by the canvas after each render. */
  attach(view: CanvasView): void {
    this.view = view;
  }

  positions(): ReadonlyMap<string, Point> {
    return this.view.positions;
  }

  drawing(): Drawing {
    return this.view.drawing;
  }

  middle(): Point {
    return this.view.middle();
  }

  /** Scroll to nodes that are out of view after the next frame. Without ids, show all. */
  reveal(ids: readonly string[]): void {
    requestAnimationFrame(() => (ids.length === 0 ? this.view.showAll() : this.view.reveal(ids)));
  }

  /** Reveal a node now, or when the canvas is mounted. */
  showNode(id: string): void {
    this.initialNode = id;
    this.reveal([id]);
  }

  focus(): void {
    focusPicked(this.view.element, () => this.view.picked);
  }
}
