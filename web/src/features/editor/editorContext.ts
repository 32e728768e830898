/** State shared by the parts of the editor: the draft, the server's check results, and the selection. */
import { createContext, createElement, type ReactNode, useContext, useMemo } from "react";
import type { Problem } from "@/api/http";
import type { Definition, DefinitionNode, JsonObject, WorkflowDetail } from "@/api/views";
import { NodesContext } from "@/graph/model/nodeNames";
import type { CanvasHandle } from "./canvas/canvasHandle";
import type { Picked, Selection } from "./canvas/selection";
import type { Draft, DraftStore } from "./document/draft";
import type { Checked } from "./document/useChecked";

export interface EditorState {
  id: string;
  /** The stored revision; `draft.shown` is the edited definition. */
  saved: WorkflowDetail;
  store: DraftStore;
  draft: Draft;
  /** Whether the user may edit; if not, every edit is ignored. */
  mayChange: boolean;
  /** The draft has unsaved changes. */
  isChanged: boolean;
  checked: Checked;
  /** JSON Schema of the document language, once it is loaded. */
  schema: JsonObject | undefined;
  /** All selected elements; `picked` is set if exactly one is selected. */
  selection: Selection;
  select: (selection: Selection) => void;
  picked: Picked | null;
  /** The selected node, if exactly one element is selected and it is a node. */
  node: DefinitionNode | undefined;
  /** Select an element and show its properties. */
  pick: (picked: Picked | null) => void;
  /** The panel beside the canvas. */
  panel: string;
  show: (panel: string) => void;
  /** Select the element that a problem concerns. */
  jump: (problem: Problem) => void;
  /** Handle of the canvas for the other parts. */
  canvas: CanvasHandle;
}

const Context = createContext<EditorState | null>(null);

/** Provide the editor state and the node names. */
export function EditorContext({ value, children }: { value: EditorState; children: ReactNode }) {
  const named = createElement(NodesContext.Provider, { value: value.draft.shown.nodes }, children);
  return createElement(Context.Provider, { value }, named);
}

export function useEditor(): EditorState {
  const work = useContext(Context);
  if (!work) throw new Error("This part belongs into the editor.");
  return work;
}

/** The edited definition with the regions of its last check. */
export function useDrawnDefinition(): Definition {
  const { draft, checked } = useEditor();
  return useMemo(
    () => (checked.graph ? { ...draft.shown, graph: checked.graph } : draft.shown),
    [draft.shown, checked.graph],
  );
}
