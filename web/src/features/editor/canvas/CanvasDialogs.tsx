/** What is asked over the canvas: what to add, which node to find, where something leads, which keys there are. */
import { lazy, Suspense, useRef } from "react";
import type { Adding } from "../document/edits";
import { useEditor } from "../editorContext";
import { type Picked, selectionOf } from "./selection";

const QuickAdd = lazy(() => import("./QuickAdd"));
const Finder = lazy(() => import("./Finder"));
const ConnectDialog = lazy(() => import("./ConnectDialog"));
const Shortcuts = lazy(() => import("./Shortcuts"));

export type OpenDialog =
  | { kind: "add"; adding: Omit<Adding, "type"> }
  | { kind: "find" }
  | { kind: "connect"; from: Picked }
  | { kind: "help" }
  | null;

export function CanvasDialogs(props: { asked: OpenDialog; onClose: () => void; onAdd: (adding: Adding) => void }) {
  const { draft, select, show, stage } = useEditor();
  const { asked, onClose, onAdd } = props;
  const isChosen = useRef(false);
  /** Who chose something goes on at what was chosen; who did not, where they were. */
  const goOn = () => {
    if (!isChosen.current) return false;
    isChosen.current = false;
    stage.focus();
    return true;
  };
  return (
    <Suspense>
      {asked?.kind === "add" ? (
        <QuickAdd
          goOn={goOn}
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
          goOn={goOn}
          onMove={(id) => stage.reveal([id])}
          onChoose={(id) => {
            isChosen.current = true;
            onClose();
            select(selectionOf({ kind: "node", id }));
            show("properties");
            stage.reveal([id]);
          }}
          onClose={onClose}
        />
      ) : null}
      {asked?.kind === "connect" ? <ConnectDialog from={asked.from} onClose={onClose} /> : null}
      {asked?.kind === "help" ? <Shortcuts onClose={onClose} /> : null}
    </Suspense>
  );
}
