/** Keyboard shortcuts of the editor, outside of text fields. */

import { useEffect, useEffectEvent } from "react";
import type { Point } from "@/graph/layout/geometry";
import type { DraftStore } from "../document/draft";

const TYPING = "input, textarea, select, [contenteditable], .cm-editor";
/** Elements that handle Ctrl+Enter themselves. */
const HAS_OWN_ENTER = "[role=dialog], :is(textarea, input)[aria-keyshortcuts~='Control+Enter']";
/** Elements that handle the keys of the canvas themselves. */
const HAS_OWN_KEYS = "[role=dialog], [role=tree], [role=menu], [role=listbox]";

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TYPING) !== null;
}

/** `save` and `start` also work while the user types. */
export function useKeys(store: DraftStore, verbs: { save: () => void; start: () => void }): void {
  const latest = useEffectEvent(() => verbs);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey)) return;
      if (event.key === "s" && !event.shiftKey && !event.altKey) {
        event.preventDefault();
        latest().save();
      }
      const isOwn = event.target instanceof Element && event.target.closest(HAS_OWN_ENTER);
      if (event.key === "Enter" && !isOwn) {
        event.preventDefault();
        latest().start();
      }
      if (isTyping(event.target)) return;
      if (event.key === "z" && !event.shiftKey) store.getState().undo();
      else if (event.key === "y" || (event.key.toLowerCase() === "z" && event.shiftKey)) store.getState().redo();
      else return;
      event.preventDefault();
    };
    // In the capture phase, before fields that use some of these keys differently.
    window.addEventListener("keydown", press, true);
    return () => window.removeEventListener("keydown", press, true);
  }, [store]);
}

export interface CanvasVerbs {
  add: () => void;
  addNote: () => void;
  /** Add a frame around the selection. */
  addFrame: () => void;
  find: () => void;
  help: () => void;
  tidy: () => void;
  /** Tidy up, and wrap what is long into rows. */
  tidyInRows: () => void;
  fold: () => void;
  outline: () => void;
  /** Connect the selected element to another node. */
  connect: () => void;
  /** Move by this number of pixels. */
  move: (by: Point) => void;
  /** Focus the fields of the selected element. */
  edit: () => void;
  /** Move the focus from the fields back to the canvas. */
  leave: () => void;
  selectAll: () => void;
  clearSelection: () => void;
  remove: () => void;
  duplicate: () => void;
  /** The selected nodes as text; null without a selection. */
  copyText: () => string | null;
  paste: (text: string) => void;
}

type Verb = Exclude<keyof CanvasVerbs, "copied" | "paste" | "move">;

const LETTERS: Readonly<Record<string, Verb>> = {
  a: "add",
  n: "addNote",
  f: "addFrame",
  c: "connect",
  "/": "find",
  "?": "help",
  t: "tidy",
  g: "fold",
  o: "outline",
  e: "edit",
};
const LETTERS_WITH_SHIFT: Readonly<Record<string, Verb>> = { ...LETTERS, t: "tidyInRows" };
const WITH_CTRL: Readonly<Record<string, Verb>> = { a: "selectAll", d: "duplicate", f: "find" };
/** Elements that Enter opens. */
const OPENED = ".react-flow__node-box, .react-flow__node-note, .react-flow__edge";
const WITHOUT_MODIFIER: Readonly<Record<string, Verb>> = {
  Delete: "remove",
  Backspace: "remove",
  Escape: "clearSelection",
};

/** Same step as React Flow's own arrow keys, in pixels. */
const STEP = 5;
const FAST_FACTOR = 4;
const DIRECTIONS: Readonly<Record<string, Point>> = {
  ArrowUp: { x: 0, y: -STEP },
  ArrowDown: { x: 0, y: STEP },
  ArrowLeft: { x: -STEP, y: 0 },
  ArrowRight: { x: STEP, y: 0 },
};

/** Letter shortcuts work only while the canvas or nothing has the focus. */
export function useCanvasKeys(verbs: CanvasVerbs): void {
  const latest = useEffectEvent(() => verbs);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target instanceof Element ? event.target : null;
      if (event.defaultPrevented || event.altKey) return;
      const isBeside = Boolean(target?.closest("[role=tabpanel]"));
      if (event.key === "Escape" && isBeside) return latest().leave();
      if (isTyping(target) || target?.closest(HAS_OWN_KEYS)) return;
      const isCtrl = event.ctrlKey || event.metaKey;
      const key = event.key.toLowerCase();
      const isFree = target === document.body || target?.closest("[data-canvas]");
      const way = target === document.body || target?.matches("[data-canvas]") ? DIRECTIONS[event.key] : undefined;
      if (way && !isCtrl) {
        const factor = event.shiftKey ? FAST_FACTOR : 1;
        latest().move({ x: way.x * factor, y: way.y * factor });
        return event.preventDefault();
      }
      const opened = event.key === "Enter" && target?.matches(OPENED) ? "edit" : undefined;
      const alone = isBeside ? undefined : (opened ?? WITHOUT_MODIFIER[event.key]);
      const letters = event.shiftKey ? LETTERS_WITH_SHIFT : LETTERS;
      const verb = isCtrl ? WITH_CTRL[key] : (alone ?? (isFree ? letters[key] : undefined));
      if (!verb) return;
      event.preventDefault();
      latest()[verb]();
    };
    const isCanvasEvent = (event: ClipboardEvent) =>
      !isTyping(event.target) &&
      !(event.target instanceof Element && event.target.closest("[role=dialog]")) &&
      document.getSelection()?.isCollapsed !== false;
    const copy = (event: ClipboardEvent) => {
      const text = isCanvasEvent(event) ? latest().copyText() : null;
      if (text === null) return;
      event.clipboardData?.setData("text/plain", text);
      event.preventDefault();
      if (event.type === "cut") latest().remove();
    };
    const paste = (event: ClipboardEvent) => {
      if (!isCanvasEvent(event)) return;
      const text = event.clipboardData?.getData("text/plain") ?? "";
      if (text) latest().paste(text);
    };
    window.addEventListener("keydown", press);
    window.addEventListener("copy", copy);
    window.addEventListener("cut", copy);
    window.addEventListener("paste", paste);
    return () => {
      window.removeEventListener("keydown", press);
      window.removeEventListener("copy", copy);
      window.removeEventListener("cut", copy);
      window.removeEventListener("paste", paste);
    };
  }, []);
}
