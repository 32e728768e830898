/** Dialogs of the canvas: add a node, find a node, connect, and show shortcuts. */
import { lazy, Suspense, useRef } from "react";
import { useEditor } from "../editorContext";
import type { Drawing, OpenDialog } from "./drawing";
import { selectionOf } from "./selection";

const QuickAdd = lazy(() => import("./QuickAdd"));
const Finder = lazy(() => import("./Finder"));
const ConnectDialog = lazy(() => import("./ConnectDialog"));
const OutcomeDialog = lazy(() => import("./OutcomeDialog"));
const Shortcuts = lazy(() => import("./Shortcuts"));

export function CanvasDialogs(props: { asked: OpenDialog; onClose: () => void; drawing: Drawing }) {
  const { draft, select, show, canvas } = useEditor();
  const { asked, onClose, drawing } = props;
  const isChosen = useRef(false);
  /** After a choice the focus moves to the chosen element; otherwise it returns to where it was. */
  const restoreFocus = () => {
    if (!isChosen.current) return false;
    isChosen.current = false;
    canvas.focus();
    return true;
  };
  const isMoved = (focus: () => void) => {
    isChosen.current = false;
    focus();
    return true;
  };
  return (
    <Suspense>
      {asked?.kind === "add" ? (
        <QuickAdd
          restoreFocus={restoreFocus}
          onClose={onClose}
          onAdd={(type) => {
            isChosen.current = true;
            onClose();
            drawing.add({ ...asked.adding, type });
          }}
        />
      ) : null}
      {asked?.kind === "find" ? (
        <Finder
          definition={draft.shown}
          restoreFocus={restoreFocus}
          onMove={(id) => canvas.reveal([id])}
          onChoose={(id) => {
            isChosen.current = true;
            onClose();
            select(selectionOf({ kind: "node", id }));
            show("properties");
            canvas.reveal([id]);
          }}
          onClose={onClose}
        />
      ) : null}
      {asked?.kind === "connect" ? <ConnectDialog from={asked.from} onClose={onClose} /> : null}
      {asked?.kind === "outcome" ? (
        <OutcomeDialog
          asked={asked}
          restoreFocus={() => (isChosen.current && asked.focus ? isMoved(asked.focus) : restoreFocus())}
          onClose={onClose}
          onChoose={(outcome) => {
            isChosen.current = true;
            onClose();
            asked.choose(outcome);
          }}
        />
      ) : null}
      {asked?.kind === "help" ? <Shortcuts onClose={onClose} /> : null}
    </Suspense>
  );
}
