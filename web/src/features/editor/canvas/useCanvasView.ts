/** Viewport of the editor canvas: attaches itself to the canvas handle and scrolls to nodes. */
import type { ReactFlowInstance } from "@xyflow/react";
import { type RefObject, useLayoutEffect } from "react";
import { BOX, type Point } from "@/graph/layout/geometry";
import { fitViewport, initialViewport, isFullyVisible } from "@/graph/render/viewport";
import type { VisiblePicture } from "@/graph/render/visiblePicture";
import type { ArrowEdge } from "@/graph/render/WorkflowEdge";
import { useEditor } from "../editorContext";
import type { Drawing } from "./drawing";
import { existingIn, pickedOf } from "./selection";
import type { EditorNode } from "./useBoxes";

const READABLE_ZOOM = 0.6;

export function useCanvasView(about: {
  flow: ReactFlowInstance<EditorNode, ArrowEdge>;
  box: RefObject<HTMLDivElement | null>;
  shown: VisiblePicture;
  positions: ReadonlyMap<string, Point>;
  drawing: Drawing;
}) {
  const { flow, box, shown, positions, drawing } = about;
  const { canvas, selection, draft } = useEditor();
  const picked = pickedOf(existingIn(selection, draft.shown));
  const showAll = () => void flow.setViewport(fitViewport(shown, box.current));
  const reveal = (ids: readonly string[]) => {
    const view = box.current;
    const stands = ids.flatMap((id) => positions.get(id) ?? []);
    const first = stands[0];
    if (!view || !first) return;
    const { x, y, zoom } = flow.getViewport();
    const isVisible = stands.some((at) => {
      const [left, top] = [at.x * zoom + x, at.y * zoom + y];
      return (
        left >= 0 &&
        top >= 0 &&
        left + BOX.width * zoom <= view.clientWidth &&
        top + BOX.height * zoom <= view.clientHeight
      );
    });
    if (isVisible) return;
    // A small picture is shown whole, with the new box and its predecessor.
    const all = initialViewport(shown, view);
    if (isFullyVisible(shown, view, all)) return void flow.setViewport(all, { duration: 200 });
    const to = { zoom: Math.max(zoom, READABLE_ZOOM), duration: 200 };
    void flow.setCenter(first.x + BOX.width / 2, first.y + BOX.height / 2, to);
  };
  const middle = () => {
    const view = box.current?.getBoundingClientRect();
    const at = view ? { x: view.x + view.width / 2, y: view.y + view.height / 2 } : { x: 0, y: 0 };
    return flow.screenToFlowPosition(at);
  };
  useLayoutEffect(() => canvas.attach({ element: box.current, positions, picked, middle, reveal, showAll, drawing }));
  const begin = () => {
    void flow.setViewport(initialViewport(shown, box.current));
    if (canvas.initialNode !== null) reveal([canvas.initialNode]);
  };
  return { picked, showAll, reveal, begin };
}
