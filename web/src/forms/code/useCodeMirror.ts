/** A text editor that its caller controls: it reports what is typed and shows the value that it is given; the caret stays. */
import { EditorState, type Extension, Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { type RefObject, useEffectEvent, useLayoutEffect, useRef } from "react";

interface Kept {
  place: RefObject<HTMLDivElement | null>;
  view: RefObject<EditorView | null>;
}

/** `extensions` are those of the first rendering; what changes later belongs into compartments. */
export function useCodeMirror(value: string, onChange: (text: string) => void, extensions: () => Extension): Kept {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useEffectEvent(onChange);
  const first = useRef({ value, extensions });
  useLayoutEffect(() => {
    if (!place.current) return;
    const made = new EditorView({
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
    view.current = made;
    return () => {
      first.current.value = made.state.doc.toString();
      made.destroy();
      view.current = null;
    };
  }, []);
  // With the rendering, not after it: what is typed in between would be taken back, and put in again behind the caret.
  useLayoutEffect(() => {
    const now = view.current;
    if (!now || now.state.doc.toString() === value) return;
    now.dispatch({
      changes: differenceOf(now.state.doc.toString(), value),
      annotations: [Transaction.remote.of(true), Transaction.addToHistory.of(false)],
    });
  }, [value]);
  return { place, view };
}

/** The one piece in which two texts differ: what stands around it keeps its carets and marks. */
export function differenceOf(before: string, after: string): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}
