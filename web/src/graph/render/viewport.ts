/** Initial viewport of a picture: all of it if that is readable, otherwise its full width, otherwise its beginning. */

import { getViewportForBounds, type Viewport } from "@xyflow/react";
import type { Layout, Rect } from "@/graph/layout/geometry";
import { BOX } from "@/graph/layout/geometry";

/** Below this zoom level names are unreadable. */
const READABLE = 0.44;
/** Zoom level if the picture does not fit anyway. */
const COMFORTABLE = 0.62;
const LARGEST = 1.1;
const MARGIN = 28;
export const SMALLEST = 0.01;

interface PictureExtent {
  layout: Layout;
  bounds: Rect;
}
type Window = { clientWidth: number; clientHeight: number } | null;

export function initialViewport({ layout, bounds }: PictureExtent, box: Window): Viewport {
  const positions = [...layout.positions.values()];
  if (!box || positions.length === 0) return { x: MARGIN, y: MARGIN, zoom: 1 };
  const { x: left, y: top, width, height } = bounds;
  const room = { width: box.clientWidth - 2 * MARGIN, height: box.clientHeight - 2 * MARGIN };
  const [across, all] = [room.width / width, Math.min(room.width / width, room.height / height)];
  const zoom =
    all >= READABLE ? Math.min(all, LARGEST) : across >= READABLE ? Math.min(across, COMFORTABLE) : COMFORTABLE;
  const first = positions.reduce((best, one) => (one.x < best.x || (one.x === best.x && one.y < best.y) ? one : best));
  const isHighest = positions.every((one) => one.y >= first.y);
  return {
    zoom,
    x: width * zoom <= room.width ? (box.clientWidth - width * zoom) / 2 - left * zoom : MARGIN - left * zoom,
    y:
      height * zoom <= room.height
        ? (box.clientHeight - height * zoom) / 2 - top * zoom
        : isHighest
          ? MARGIN - top * zoom
          : box.clientHeight / 2 - (first.y + BOX.height / 2) * zoom,
  };
}

/** Whether the whole picture is visible in this viewport. */
export function isFullyVisible({ bounds }: PictureExtent, box: Window, { x, y, zoom }: Viewport): boolean {
  if (!box) return false;
  const [left, top] = [bounds.x * zoom + x, bounds.y * zoom + y];
  return (
    left >= 0 &&
    top >= 0 &&
    left + bounds.width * zoom <= box.clientWidth &&
    top + bounds.height * zoom <= box.clientHeight
  );
}

/** Fit the whole picture, however small it becomes. */
export function fitViewport({ layout, bounds }: PictureExtent, box: Window): Viewport {
  if (!box || layout.positions.size === 0) return { x: MARGIN, y: MARGIN, zoom: 1 };
  return getViewportForBounds(bounds, box.clientWidth, box.clientHeight, SMALLEST, LARGEST, 0.06);
}
