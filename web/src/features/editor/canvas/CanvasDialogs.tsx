/** Dialogs of the canvas: add a node, find a node, connect, and show shortcuts. */
import { lazy, Suspense, useRef } from "react";
import type { NewNode } from "../document/edits";
import { useEditor } from "../editorContext";
import { type Picked, selectionOf } from "./selection";

const QuickAdd = lazy(() => import("./QuickAdd"));
const Finder = lazy(() => import("./Finder"));
const ConnectDialog = lazy(() => import("./ConnectDialog"));
const Shortcuts = lazy(() => import("./Shortcuts"));

export type OpenDialog =
  | { kind: "add"; adding: Omit<NewNode, "type"> }
  | { kind: "find" }
  | { kind: "connect"; from: Picked }
  | { kind: "help" }
  | null;

export function CanvasDialogs(props: { asked: OpenDialog; onClose: () => void; onAdd: (adding: NewNode) => void }) {
  const { draft, select, show, canvas } = useEditor();
  const { asked, onClose, onAdd } = props;
  const isChosen = useRef(false);
  /** After a choice the focus moves to the chosen element; otherwise it returns to where it was. */
  const restoreFocus = () => {
    if (!isChosen.current) return false;
    isChosen.current = false;
    canvas.focus();
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
            onAdd({ ...asked.adding, type });
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
      {asked?.kind === "help" ? <Shortcuts onClose={onClose} /> : null}
    </Suspense>
  );
}
