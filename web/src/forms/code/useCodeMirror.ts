/** Controlled CodeMirror editor: reports typed text and shows the given value without moving the caret. */
import { EditorState, type Extension, Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { type RefObject, useEffectEvent, useLayoutEffect, useRef } from "react";

interface CodeMirror {
  container: RefObject<HTMLDivElement | null>;
  view: RefObject<EditorView | null>;
}

/** `extensions` is called for the first render only; use compartments for anything that changes later. */
export function useCodeMirror(
  value: string,
  onChange: (text: string) => void,
  extensions: () => Extension,
): CodeMirror {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useEffectEvent(onChange);
  const first = useRef({ value, extensions });
  useLayoutEffect(() => {
    if (!place.current) return;
    const editor = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: first.current.value,
        extensions: [
          first.current.extensions(),
          EditorView.updateListener.of((update) => {
            const isTyped = update.transactions.some(
              (one) => one.docChanged && one.annotation(Transaction.remote) !== true,
            );
            if (isTyped) changed(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => {
      first.current.value = editor.state.doc.toString();
      editor.destroy();
      view.current = null;
    };
  }, []);
  // In a layout effect: a later effect would revert text typed in between and insert it again behind the caret.
  useLayoutEffect(() => {
    const now = view.current;
    if (!now || now.state.doc.toString() === value) return;
    now.dispatch({
      changes: differenceOf(now.state.doc.toString(), value),
      annotations: [Transaction.remote.of(true), Transaction.addToHistory.of(false)],
    });
  }, [value]);
  return { container: place, view };
}

/** The one range in which two texts differ; carets and marks outside of it stay valid. */
export function differenceOf(before: string, after: string): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}
