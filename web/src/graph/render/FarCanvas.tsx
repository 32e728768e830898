/**
 * Overview of a large workflow: thousands of boxes painted on one canvas. At this zoom names are unreadable, so no DOM
 * nodes are needed.
 */

import { useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { type MouseEvent, useContext, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { Point } from "@/graph/layout/geometry";
import { BOX } from "@/graph/layout/geometry";
import { LARGE_PICTURE } from "@/graph/model/picture";
import type { Routes } from "@/graph/routing/routes";
import { OverlayContext } from "./overlay";
import { colourOf } from "./pageColors";
import type { VisiblePicture } from "./visiblePicture";

/** Zoom level below which names are unreadable. */
const OVERVIEW_ZOOM = 0.28;
const READING_ZOOM = 0.75;
const COLOURS: Readonly<Record<string, string>> = {
  done: "--done",
  passed: "--done",
  failed: "--failed",
  running: "--running",
  waiting: "--waiting",
};

/** Whether the boxes are too small to read and too many to render. */
export function useIsFar(boxes: number): boolean {
  const isFar = useStore((state) => state.transform[2] < OVERVIEW_ZOOM);
  return isFar && boxes > LARGE_PICTURE;
}

export function FarCanvas({ shown }: { shown: VisiblePicture }) {
  const { picture, layout } = shown;
  const { t } = useTranslation();
  const canvas = useRef<HTMLCanvasElement>(null);
  const store = useStoreApi();
  const overlay = useContext(OverlayContext);
  useEffect(() => {
    const paper = canvas.current;
    if (!paper) return;
    let frameRequest = 0;
    const known = new Map<string, string>();
    const ink = (name: string) => {
      const colour = known.get(name) ?? colourOf(name);
      known.set(name, colour);
      return colour;
    };
    const draw = () => {
      frameRequest = 0;
      const { transform, width, height } = store.getState();
      const scale = window.devicePixelRatio;
      if (paper.width !== Math.round(width * scale) || paper.height !== Math.round(height * scale)) {
        paper.width = Math.round(width * scale);
        paper.height = Math.round(height * scale);
      }
      const pen = paper.getContext("2d");
      if (!pen) return;
      const [x, y, zoom] = transform;
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, paper.width, paper.height);
      pen.setTransform(zoom * scale, 0, 0, zoom * scale, x * scale, y * scale);
      const seen = { left: -x / zoom, top: -y / zoom, right: (width - x) / zoom, bottom: (height - y) / zoom };
      drawLines(pen, shown, seen, 1 / zoom, ink("--line"));
      for (const box of picture.boxes) {
        const at = layout.positions.get(box.id);
        if (
          !at ||
          at.x > seen.right ||
          at.y > seen.bottom ||
          at.x + BOX.width < seen.left ||
          at.y + BOX.height < seen.top
        )
          continue;
        pen.fillStyle = ink(COLOURS[overlay?.box(box.id)?.look ?? ""] ?? "--line-strong");
        pen.fillRect(at.x, at.y, BOX.width, BOX.height);
      }
    };
    const requestDraw = () => {
      if (frameRequest === 0) frameRequest = requestAnimationFrame(draw);
    };
    draw();
    const ends = [store.subscribe(requestDraw), overlay?.subscribe(requestDraw)];
    return () => {
      cancelAnimationFrame(frameRequest);
      for (const end of ends) end?.();
    };
  }, [store, shown, picture, layout, overlay]);
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={t("graph.far", { count: picture.boxes.length })}
      className="far-canvas pointer-events-none absolute inset-0 size-full"
    />
  );
}

/** Return a handler that zooms in to the position of the pointer. */
export function useZoomToPointer(): (event: MouseEvent) => void {
  const flow = useReactFlow();
  return (event) => {
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    void flow.setCenter(at.x, at.y, { zoom: READING_ZOOM, duration: 250 });
  };
}

interface VisibleArea {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

function drawLines(pen: CanvasRenderingContext2D, { routes }: Routes, seen: VisibleArea, width: number, ink: string) {
  pen.beginPath();
  for (const { points } of routes.values()) {
    if (isOutside(points, seen)) continue;
    points.forEach((point, at) => {
      if (at === 0) pen.moveTo(point.x, point.y);
      else pen.lineTo(point.x, point.y);
    });
  }
  pen.lineWidth = width;
  pen.strokeStyle = ink;
  pen.stroke();
}

function isOutside(points: readonly Point[], seen: VisibleArea): boolean {
  return (
    points.every((one) => one.x < seen.left) ||
    points.every((one) => one.x > seen.right) ||
    points.every((one) => one.y < seen.top) ||
    points.every((one) => one.y > seen.bottom)
  );
}
