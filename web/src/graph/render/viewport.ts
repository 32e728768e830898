/** What of a picture is seen first: all of it, or all that stands side by side, if it can be read; else its beginning. */

import { getViewportForBounds, type Viewport } from "@xyflow/react";
import type { Layout, Rect } from "@/graph/layout/geometry";
import { BOX } from "@/graph/layout/geometry";

/** Smaller, names cannot be read. */
const READABLE = 0.44;
/** Where something has to be cut, the rest is well to be read. */
const COMFORTABLE = 0.62;
const LARGEST = 1.1;
const MARGIN = 28;
export const SMALLEST = 0.02;

interface Seen {
  layout: Layout;
  bounds: Rect;
}
type Window = { clientWidth: number; clientHeight: number } | null;

export function viewOf({ layout, bounds }: Seen, box: Window): Viewport {
  const places = [...layout.positions.values()];
  if (!box || places.length === 0) return { x: MARGIN, y: MARGIN, zoom: 1 };
  const { x: left, y: top, width, height } = bounds;
  const room = { width: box.clientWidth - 2 * MARGIN, height: box.clientHeight - 2 * MARGIN };
  const [across, all] = [room.width / width, Math.min(room.width / width, room.height / height)];
  const zoom =
    all >= READABLE ? Math.min(all, LARGEST) : across >= READABLE ? Math.min(across, COMFORTABLE) : COMFORTABLE;
  const first = places.reduce((best, one) => (one.x < best.x || (one.x === best.x && one.y < best.y) ? one : best));
  const isHighest = places.every((one) => one.y >= first.y);
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

/** Whether nothing of the picture is outside of what is seen so. */
export function isWhole({ bounds }: Seen, box: Window, { x, y, zoom }: Viewport): boolean {
  if (!box) return false;
  const [left, top] = [bounds.x * zoom + x, bounds.y * zoom + y];
  return (
    left >= 0 &&
    top >= 0 &&
    left + bounds.width * zoom <= box.clientWidth &&
    top + bounds.height * zoom <= box.clientHeight
  );
}

/** All of it, however small that becomes. */
export function wholeViewOf({ layout, bounds }: Seen, box: Window): Viewport {
  if (!box || layout.positions.size === 0) return { x: MARGIN, y: MARGIN, zoom: 1 };
  return getViewportForBounds(bounds, box.clientWidth, box.clientHeight, SMALLEST, LARGEST, 0.06);
}
