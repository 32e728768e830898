/** What the parts of the editor share: what is edited, what the server says of it, and what is picked. */
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
  /** As it is stored; what is on the screen is `draft.shown`. */
  saved: WorkflowDetail;
  store: DraftStore;
  draft: Draft;
  /** Who looks may change it; else nothing that is done changes what is shown. */
  mayChange: boolean;
  /** Something on the screen is not saved. */
  isChanged: boolean;
  checked: Checked;
  /** The language, once it is here. */
  schema: JsonObject | undefined;
  /** All that is selected; what is picked is the one thing, where it is one. */
  selection: Selection;
  select: (selection: Selection) => void;
  picked: Picked | null;
  /** The node that is picked, where one is. */
  node: DefinitionNode | undefined;
  /** Picks it and shows what it says. */
  pick: (picked: Picked | null) => void;
  /** Which part stands beside the canvas. */
  panel: string;
  show: (panel: string) => void;
  /** Picks what a problem is about. */
  jump: (problem: Problem) => void;
  /** The canvas, as the other parts know it. */
  stage: CanvasHandle;
}

const Shared = createContext<EditorState | null>(null);

/** Shares it, and how its nodes are called. */
export function EditorContext({ value, children }: { value: EditorState; children: ReactNode }) {
  const named = createElement(NodesContext.Provider, { value: value.draft.shown.nodes }, children);
  return createElement(Shared.Provider, { value }, named);
}

export function useEditor(): EditorState {
  const work = useContext(Shared);
  if (!work) throw new Error("This part belongs into the editor.");
  return work;
}

/** The definition on the screen, with the regions of its last check. */
export function useDrawnDefinition(): Definition {
  const { draft, checked } = useEditor();
  return useMemo(
    () => (checked.graph ? { ...draft.shown, graph: checked.graph } : draft.shown),
    [draft.shown, checked.graph],
  );
}
