/** What a JSON pointer of a problem is about, on the screen. */

import type { Definition } from "@/api/views";
import { edgeNames } from "@/graph/model/edgeNames";
import type { Picked } from "../canvas/selection";

/** Dialects that name nodes by keys have their ids where others have numbers. Null: the workflow as a whole. */
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

const FRAMES_MAX = 300;
const FRAMES_FOR_EXACT = 20;
const REACHED = "input, textarea, select, [contenteditable=true], button";

const FIELD = "input, textarea, select, [contenteditable=true]";

/** Goes to the first thing that can be said of what is picked, as soon as it is there. */
export function focusFirst(frame = 0): void {
  requestAnimationFrame(() => {
    const panel = document.querySelector("[role=tabpanel]");
    const isComing = !panel || panel.querySelector("[data-loading]") !== null;
    if (isComing && frame < FRAMES_MAX) return focusFirst(frame + 1);
    const field = panel?.querySelector<HTMLElement>(FIELD);
    (field ?? panel?.querySelector<HTMLElement>(REACHED))?.focus();
  });
}

/** The box or the connection on the canvas that keys have come to; null: it is neither, or a hand has come to it. */
export function pickedBy(target: Element): Picked | null {
  const id = target instanceof HTMLElement || target instanceof SVGElement ? target.dataset.id : undefined;
  if (id === undefined || !target.matches(":focus-visible")) return null;
  if (target.matches(".react-flow__node-box")) return { kind: "node", id };
  return target.matches(".react-flow__edge") ? { kind: "edge", id } : null;
}

/** Goes to the canvas, and there to what is picked by then, as soon as it is drawn: unless one has gone elsewhere. */
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

/** Goes to the field at a pointer, or to the nearest around it, as soon as it is there with all that it loads. */
export function focusAt(pointer: string, frame = 0): void {
  const fields = [...document.querySelectorAll<HTMLElement>("[data-at]")];
  const around = fields
    .filter((one) => pointer === one.dataset.at || pointer.startsWith(`${one.dataset.at}/`))
    .sort((a, b) => (b.dataset.at?.length ?? 0) - (a.dataset.at?.length ?? 0));
  const [nearest] = around;
  const isThere = nearest && (nearest.dataset.at === pointer || frame > FRAMES_FOR_EXACT);
  const inner = nearest?.querySelector<HTMLElement>(REACHED);
  if (!isThere || !inner || nearest.querySelector("[data-coming]")) {
    if (frame < FRAMES_MAX) requestAnimationFrame(() => focusAt(pointer, frame + 1));
    return;
  }
  for (let one: HTMLElement | null = inner; one; one = one.parentElement)
    if (one instanceof HTMLDetailsElement) one.open = true;
  nearest.scrollIntoView({ block: "center" });
  inner.focus();
}
