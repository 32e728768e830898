/** What of a picture is seen first: all of it, if it can be read; else its beginning. */
import type { Viewport } from "@xyflow/react";
import { BOX } from "./picture";
import type { Layout } from "./quickLayout";

const READABLE = 0.62;
const LARGEST = 1.1;
const MARGIN = 40;

export function viewOf(layout: Layout, box: { clientWidth: number; clientHeight: number } | null): Viewport {
  const places = [...layout.places.values()];
  if (!box || places.length === 0) return { x: MARGIN, y: MARGIN, zoom: 1 };
  const left = Math.min(...places.map((one) => one.x));
  const top = Math.min(...places.map((one) => one.y));
  const width = Math.max(...places.map((one) => one.x)) + BOX.width - left;
  const height = Math.max(...places.map((one) => one.y)) + BOX.height - top;
  const room = { width: box.clientWidth - 2 * MARGIN, height: box.clientHeight - 2 * MARGIN };
  const all = Math.min(room.width / width, room.height / height);
  const zoom = Math.min(Math.max(all, READABLE), LARGEST);
  const first = places.reduce((best, one) => (one.x < best.x ? one : best));
  return {
    zoom,
    x: width * zoom <= room.width ? (box.clientWidth - width * zoom) / 2 - left * zoom : MARGIN - left * zoom,
    y:
      height * zoom <= room.height
        ? (box.clientHeight - height * zoom) / 2 - top * zoom
        : box.clientHeight / 2 - (first.y + BOX.height / 2) * zoom,
  };
}
