/** A large workflow seen from afar: thousands of boxes as one drawing. Nobody could read them, and nothing has to be built. */

import { useReactFlow, useStore, useStoreApi } from "@xyflow/react";
import { type MouseEvent, useContext, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { Point } from "@/graph/layout/geometry";
import { BOX } from "@/graph/layout/geometry";
import { MANY } from "@/graph/model/picture";
import type { Routes } from "@/graph/routing/routes";
import { OverlayContext } from "./overlay";
import { colourOf } from "./pageColors";
import type { VisiblePicture } from "./visiblePicture";

/** Nearer than this, names can be read. */
const FAR = 0.28;
const NEAR = 0.75;
const COLOURS: Readonly<Record<string, string>> = {
  done: "--done",
  passed: "--done",
  failed: "--failed",
  running: "--running",
  waiting: "--waiting",
};

/** Whether boxes are too small to be read and too many to be built. */
export function useIsFar(boxes: number): boolean {
  const isFar = useStore((state) => state.transform[2] < FAR);
  return isFar && boxes > MANY;
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
    let asked = 0;
    const known = new Map<string, string>();
    const ink = (name: string) => {
      const colour = known.get(name) ?? colourOf(name);
      known.set(name, colour);
      return colour;
    };
    const draw = () => {
      asked = 0;
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
    const ask = () => {
      if (asked === 0) asked = requestAnimationFrame(draw);
    };
    draw();
    const ends = [store.subscribe(ask), overlay?.subscribe(ask)];
    return () => {
      cancelAnimationFrame(asked);
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

/** Whoever wants to see more from afar comes nearer, to where they point. */
export function useComingNear(): (event: MouseEvent) => void {
  const flow = useReactFlow();
  return (event) => {
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    void flow.setCenter(at.x, at.y, { zoom: NEAR, duration: 250 });
  };
}

interface Seen {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

function drawLines(pen: CanvasRenderingContext2D, { routes: lines }: Routes, seen: Seen, width: number, ink: string) {
  pen.beginPath();
  for (const { points } of lines.values()) {
    if (isBeyond(points, seen)) continue;
    points.forEach((point, at) => {
      if (at === 0) pen.moveTo(point.x, point.y);
      else pen.lineTo(point.x, point.y);
    });
  }
  pen.lineWidth = width;
  pen.strokeStyle = ink;
  pen.stroke();
}

function isBeyond(points: readonly Point[], seen: Seen): boolean {
  return (
    points.every((one) => one.x < seen.left) ||
    points.every((one) => one.x > seen.right) ||
    points.every((one) => one.y < seen.top) ||
    points.every((one) => one.y > seen.bottom)
  );
}
