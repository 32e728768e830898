/** The picture as a self-contained SVG: real text, the colours of the page, no external resources. */

import { framesOf } from "@/graph/layout/frames";
import { BOX, boundingRect, type Point, type Rect } from "@/graph/layout/geometry";
import { type PlacedNote, placeNotes } from "@/graph/layout/notes";
import { type LayoutOptions, layoutOf } from "@/graph/layout/quickLayout";
import type { Picture } from "@/graph/model/picture";
import { pathOf } from "@/graph/routing/paths";
import { routesOf } from "@/graph/routing/routes";
import { colourOf } from "./pageColors";

export interface Ink {
  surface: string;
  sunken: string;
  strong: string;
  ink: string;
  faint: string;
  soft: string;
  failed: string;
}

const MARGIN = 32;
const NAME = { x: 16, y: 26, size: 14, widest: BOX.width - 32 } as const;
const DETAIL = { x: 16, y: 44, size: 11.5, widest: BOX.width - 32 } as const;
const NOTE_LINE = 18;
/** Average character width as a share of the font size; wide enough for all but the widest characters. */
const LETTER = 0.56;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";

export interface Drawing {
  text: string;
  width: number;
  height: number;
}

/** `typeOf` returns the display name of a node type. */
export function renderSvg(
  picture: Picture,
  ink: Ink,
  title: string,
  typeOf: (type: string) => string,
  options: LayoutOptions = {},
): Drawing {
  const layout = layoutOf(picture, options);
  const routed = routesOf(picture, layout);
  const { routes } = routed;
  const notes = placeNotes(picture.notes ?? [], layout.positions);
  const bounds = boundingRect([...(picture.boxes.length > 0 ? [routed.bounds] : []), ...notes]) ?? routed.bounds;
  const [left, top] = [Math.floor(bounds.x) - MARGIN, Math.floor(bounds.y) - MARGIN];
  const [width, height] = [Math.ceil(bounds.width) + 2 * MARGIN + 1, Math.ceil(bounds.height) + 2 * MARGIN + 1];
  const frames = framesOf(picture.regions ?? [], layout.positions).map(
    ({ x, y, width, height, region: group }) =>
      `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="12" fill="${ink.soft}" fill-opacity=".38" stroke="${ink.strong}" stroke-dasharray="4 3"/>` +
      textElement({ x: x + 14, y: y + 18 }, typeOf(group.kind), 11.5, ink.faint),
  );
  const arrows = picture.arrows.map((arrow) => {
    const line = routes.get(arrow.id);
    if (!line) return "";
    const dashes = arrow.isImplied ? "2 4" : arrow.isError ? "5 4" : "";
    const colour = arrow.isError ? ink.failed : ink.strong;
    return `<path d="${pathOf(line.points)}" fill="none" stroke="${colour}" stroke-width="1.5"${dashes ? ` stroke-dasharray="${dashes}"` : ""} marker-end="url(#${arrow.isError ? "failed" : "tip"})"/>`;
  });
  const labels = picture.arrows.map((arrow) => {
    const label = routes.get(arrow.id)?.label;
    return arrow.label && label && label.width > 0 ? labelElement(label, arrow.label, ink) : "";
  });
  const boxes = picture.boxes.map((box) => {
    const at = layout.positions.get(box.id);
    if (!at) return "";
    const about = box.detail ? `${typeOf(box.type)} · ${box.detail}` : typeOf(box.type);
    return (
      `<g><title>${escaped(`${box.name} (${box.id})`)}</title>` +
      `<rect x="${at.x}" y="${at.y}" width="${BOX.width}" height="${BOX.height}" rx="8" fill="${ink.surface}" stroke="${ink.strong}" stroke-width="1.5"/>` +
      textElement(
        { x: at.x + NAME.x, y: at.y + NAME.y },
        truncated(box.name, NAME.size, NAME.widest),
        NAME.size,
        ink.ink,
        true,
      ) +
      textElement(
        { x: at.x + DETAIL.x, y: at.y + DETAIL.y },
        truncated(about, DETAIL.size, DETAIL.widest),
        DETAIL.size,
        ink.faint,
      ) +
      "</g>"
    );
  });
  const text =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${left} ${top} ${width} ${height}" font-family="${FONT}">` +
    `<title>${escaped(title)}</title>` +
    `<defs>${arrowhead("tip", ink.strong)}${arrowhead("failed", ink.failed)}</defs>` +
    `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="${ink.sunken}"/>` +
    `${notes.map((one) => noteElement(one, ink)).join("")}${frames.join("")}${arrows.join("")}${labels.join("")}${boxes.join("")}</svg>`;
  return { text, width, height };
}

function noteElement({ note, x, y, width, height }: PlacedNote, ink: Ink): string {
  const widest = width - 2 * NAME.x;
  const lines = note.text.split("\n").slice(0, note.isFrame ? 1 : Math.floor((height - 12) / NOTE_LINE));
  return (
    `<g><title>${escaped(note.name)}</title>` +
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${ink.surface}" fill-opacity="${note.isFrame ? 0.5 : 1}" stroke="${ink.strong}"/>` +
    lines
      .map((line, at) =>
        textElement(
          { x: x + NAME.x, y: y + 22 + at * NOTE_LINE },
          truncated(line, 12, widest),
          12,
          ink.ink,
          note.isFrame,
        ),
      )
      .join("") +
    "</g>"
  );
}

function arrowhead(id: string, colour: string): string {
  return `<marker id="${id}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M 0 0 L 10 5 L 0 10 z" fill="${colour}"/></marker>`;
}

function textElement(at: Point, text: string, size: number, colour: string, isStrong = false): string {
  const weight = isStrong ? ' font-weight="600"' : "";
  return `<text x="${at.x}" y="${at.y}" font-size="${size}" fill="${colour}"${weight}>${escaped(text)}</text>`;
}

function labelElement(at: Rect, label: string, ink: Ink): string {
  return (
    `<rect x="${at.x - at.width / 2}" y="${at.y - at.height / 2}" width="${at.width}" height="${at.height}" rx="4" fill="${ink.sunken}"/>` +
    `<text x="${at.x}" y="${at.y + 4}" font-size="11" text-anchor="middle" fill="${ink.faint}">${escaped(truncated(label, 11, at.width - 8))}</text>`
  );
}

function truncated(text: string, size: number, widest: number): string {
  const letters = [...text.replace(/\s+/g, " ").trim()];
  const most = Math.floor(widest / (size * LETTER));
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}…`;
}

/** Escape untrusted text and drop characters that XML does not allow. */
export function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "")
    .replace(/[<>&"']/g, (sign) => `&#${sign.codePointAt(0)};`);
}

/** Colours of the page in its present theme. */
export function pageInk(): Ink {
  return {
    surface: colourOf("--raised"),
    sunken: colourOf("--sunken"),
    strong: colourOf("--line-strong"),
    ink: colourOf("--ink"),
    faint: colourOf("--ink-faint"),
    soft: colourOf("--accent-soft"),
    failed: colourOf("--failed"),
  };
}

/** Largest canvas dimension that all browsers support, in pixels. */
const PIXELS_MAX = 8000;

/** Render the SVG as PNG, at double resolution if the canvas limit allows it. */
export async function renderPng(drawing: Drawing): Promise<Blob> {
  const scale = Math.min(2, PIXELS_MAX / Math.max(drawing.width, drawing.height));
  const address = URL.createObjectURL(new Blob([drawing.text], { type: "image/svg+xml" }));
  try {
    const image = new Image(drawing.width, drawing.height);
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(drawing.width * scale));
    canvas.height = Math.max(1, Math.round(drawing.height * scale));
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((give, fail) =>
      canvas.toBlob((made) => (made ? give(made) : fail(new Error("The browser made no picture."))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}
