/** Map JSON pointers of problems to elements and fields on the screen. */

import type { Problem } from "@/api/http";
import type { Definition } from "@/api/views";
import { edgeNames } from "@/graph/model/edgeNames";
import type { ProblemMark } from "@/graph/render/ProblemSign";
import type { Picked } from "../canvas/selection";

/** Dialects with maps of nodes have ids where others have indexes. Null: the workflow as a whole. */
export function pickedAt(pointer: string, definition: Definition): Picked | null {
  const found = /^\/(nodes|edges)\/([^/]+)/.exec(pointer);
  if (!found?.[2]) return null;
  const key = found[2].replaceAll("~1", "/").replaceAll("~0", "~");
  const at = /^\d+$/.test(key) ? Number(key) : -1;
  if (found[1] === "edges") {
    const name = edgeNames(definition.edges)[at];
    return name === undefined ? null : { kind: "edge", id: name };
  }
  const node = definition.nodes[at] ?? definition.nodes.find((one) => one.id === key);
  return node ? { kind: "node", id: node.id } : null;
}

/** The worst problem of each node and edge, with the messages of all of them. */
export function problemsByElement(
  definition: Definition,
  problems: readonly Problem[],
): { nodes: Map<string, ProblemMark>; edges: Map<string, ProblemMark> } {
  const found = { nodes: new Map<string, ProblemMark>(), edges: new Map<string, ProblemMark>() };
  for (const { pointer, severity, message } of problems) {
    const at = pickedAt(pointer, definition);
    if (!at || (severity !== "error" && severity !== "warning")) continue;
    const marks = at.kind === "node" ? found.nodes : found.edges;
    const known = marks.get(at.id);
    marks.set(at.id, {
      severity: known?.severity === "error" ? "error" : severity,
      text: known ? `${known.text}\n${message}` : message,
    });
  }
  return found;
}

const FRAMES_MAX = 300;
const FRAMES_FOR_EXACT = 20;
const FOCUSABLE = "input, textarea, select, [contenteditable=true], button";

const FIELD = "input, textarea, select, [contenteditable=true]";

/** Focus the first field of the properties panel as soon as it is rendered. */
export function focusFirst(frame = 0): void {
  requestAnimationFrame(() => {
    const panel = document.querySelector("[role=tabpanel]");
    const isComing = !panel || panel.querySelector("[data-loading]") !== null;
    if (isComing && frame < FRAMES_MAX) return focusFirst(frame + 1);
    const field = panel?.querySelector<HTMLElement>(FIELD);
    (field ?? panel?.querySelector<HTMLElement>(FOCUSABLE))?.focus();
  });
}

/** The node or edge that has keyboard focus on the canvas; null for other elements and for pointer focus. */
export function focusedElement(target: Element): Picked | null {
  const id = target instanceof HTMLElement || target instanceof SVGElement ? target.dataset.id : undefined;
  if (id === undefined || !target.matches(":focus-visible")) return null;
  if (target.matches(".react-flow__node-box, .react-flow__node-note")) return { kind: "node", id };
  return target.matches(".react-flow__edge") ? { kind: "edge", id } : null;
}

/** Focus the canvas, then the selected element as soon as it is rendered, unless the focus has moved elsewhere. */
export function focusPicked(canvas: HTMLElement | null, pickedNow: () => Picked | null): void {
  if (!canvas) return;
  canvas.focus({ preventScroll: true });
  const seek = (frame: number) => {
    const picked = pickedNow();
    if (!picked || document.activeElement !== canvas) return;
    const kind = picked.kind === "node" ? "react-flow__node" : "react-flow__edge";
    const drawn = canvas.querySelector<HTMLElement | SVGElement>(`.${kind}[data-id="${CSS.escape(picked.id)}"]`);
    drawn?.focus({ preventScroll: true });
    if (document.activeElement === canvas && frame < FRAMES_MAX) requestAnimationFrame(() => seek(frame + 1));
  };
  requestAnimationFrame(() => seek(0));
}

/** Focus the field at a pointer, or the nearest field around it, as soon as it and its lazy parts are rendered. */
export function focusAt(pointer: string, frame = 0): void {
  const fields = [...document.querySelectorAll<HTMLElement>("[data-at]")];
  const around = fields
    .filter((one) => pointer === one.dataset.at || pointer.startsWith(`${one.dataset.at}/`))
    .sort((a, b) => (b.dataset.at?.length ?? 0) - (a.dataset.at?.length ?? 0));
  const [nearest] = around;
  const isThere = nearest && (nearest.dataset.at === pointer || frame > FRAMES_FOR_EXACT);
  const inner = nearest?.querySelector<HTMLElement>(FOCUSABLE);
  if (!isThere || !inner || nearest.querySelector("[data-coming]")) {
    if (frame < FRAMES_MAX) requestAnimationFrame(() => focusAt(pointer, frame + 1));
    return;
  }
  for (let one: HTMLElement | null = inner; one; one = one.parentElement)
    if (one instanceof HTMLDetailsElement) one.open = true;
  nearest.scrollIntoView({ block: "center" });
  inner.focus();
}
