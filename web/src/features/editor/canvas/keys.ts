/** Keys of the editor, wherever nothing is being typed. */

import { useEffect, useEffectEvent } from "react";
import type { Point } from "@/graph/layout/geometry";
import type { DraftStore } from "../document/draft";

const TYPING = "input, textarea, select, [contenteditable], .cm-editor";
/** These have keys of their own. */
const APART = "[role=dialog], [role=tree], [role=menu], [role=listbox]";

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TYPING) !== null;
}

/** `save` and `start` are heard while one types, too. */
export function useKeys(store: DraftStore, verbs: { save: () => void; start: () => void }): void {
  const latest = useEffectEvent(() => verbs);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey)) return;
      if (event.key === "s" && !event.shiftKey && !event.altKey) {
        event.preventDefault();
        latest().save();
      }
      const isInDialog = event.target instanceof Element && event.target.closest("[role=dialog]");
      if (event.key === "Enter" && !isInDialog) {
        event.preventDefault();
        latest().start();
      }
      if (isTyping(event.target)) return;
      if (event.key === "z" && !event.shiftKey) store.getState().undo();
      else if (event.key === "y" || (event.key.toLowerCase() === "z" && event.shiftKey)) store.getState().redo();
      else return;
      event.preventDefault();
    };
    // Before fields, in which some of these keys mean something else.
    window.addEventListener("keydown", press, true);
    return () => window.removeEventListener("keydown", press, true);
  }, [store]);
}

export interface CanvasVerbs {
  add: () => void;
  find: () => void;
  help: () => void;
  tidy: () => void;
  fold: () => void;
  outline: () => void;
  /** What is selected leads to one more. */
  connect: () => void;
  /** By so many pixels. */
  move: (by: Point) => void;
  /** To the fields of what is selected. */
  edit: () => void;
  /** From the fields back to the canvas. */
  leave: () => void;
  all: () => void;
  none: () => void;
  remove: () => void;
  duplicate: () => void;
  /** What is selected, as text; null where nothing is. */
  copied: () => string | null;
  paste: (text: string) => void;
}

type Verb = Exclude<keyof CanvasVerbs, "copied" | "paste" | "move">;

const LETTERS: Readonly<Record<string, Verb>> = {
  a: "add",
  c: "connect",
  "/": "find",
  "?": "help",
  t: "tidy",
  g: "fold",
  o: "outline",
  e: "edit",
};
const WITH_CTRL: Readonly<Record<string, Verb>> = { a: "all", d: "duplicate", f: "find" };
/** What has the focus is opened as anything else is. */
const OPENED = ".react-flow__node-box, .react-flow__edge";
const ALONE: Readonly<Record<string, Verb>> = { Delete: "remove", Backspace: "remove", Escape: "none" };

/** As far as the drawing library moves the box that has the focus. */
const STEP = 5;
const FAR = 4;
const WAYS: Readonly<Record<string, Point>> = {
  ArrowUp: { x: 0, y: -STEP },
  ArrowDown: { x: 0, y: STEP },
  ArrowLeft: { x: -STEP, y: 0 },
  ArrowRight: { x: STEP, y: 0 },
};

/** Letters are heard while the canvas is at work: nothing else has the focus. */
export function useCanvasKeys(verbs: CanvasVerbs): void {
  const latest = useEffectEvent(() => verbs);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target instanceof Element ? event.target : null;
      if (event.defaultPrevented || event.altKey) return;
      const isBeside = Boolean(target?.closest("[role=tabpanel]"));
      if (event.key === "Escape" && isBeside) return latest().leave();
      if (isTyping(target) || target?.closest(APART)) return;
      const isCtrl = event.ctrlKey || event.metaKey;
      const key = event.key.toLowerCase();
      const isFree = target === document.body || target?.closest("[data-canvas]");
      const way = target === document.body || target?.matches("[data-canvas]") ? WAYS[event.key] : undefined;
      if (way && !isCtrl) {
        const factor = event.shiftKey ? FAR : 1;
        latest().move({ x: way.x * factor, y: way.y * factor });
        return event.preventDefault();
      }
      const opened = event.key === "Enter" && target?.matches(OPENED) ? "edit" : undefined;
      const alone = isBeside ? undefined : (opened ?? ALONE[event.key]);
      const verb = isCtrl ? WITH_CTRL[key] : (alone ?? (isFree ? LETTERS[key] : undefined));
      if (!verb) return;
      event.preventDefault();
      latest()[verb]();
    };
    const isOurs = (event: ClipboardEvent) =>
      !isTyping(event.target) &&
      !(event.target instanceof Element && event.target.closest("[role=dialog]")) &&
      document.getSelection()?.isCollapsed !== false;
    const copy = (event: ClipboardEvent) => {
      const text = isOurs(event) ? latest().copied() : null;
      if (text === null) return;
      event.clipboardData?.setData("text/plain", text);
      event.preventDefault();
      if (event.type === "cut") latest().remove();
    };
    const paste = (event: ClipboardEvent) => {
      if (!isOurs(event)) return;
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
