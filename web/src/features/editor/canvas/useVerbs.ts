/** Actions on the selection, shared by keys, menus, buttons and the outline. */

import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Point } from "@/graph/layout/geometry";
import { followBoxes, placeNotes, withFrameRegions } from "@/graph/layout/notes";
import { edgeNames } from "@/graph/model/edgeNames";
import type { Picture } from "@/graph/model/picture";
import { useFolding } from "@/graph/render/folding";
import type { NoteEditing } from "@/graph/render/noteEditing";
import { type Piece, pasteOperations, pieceOf, pieceText, readPiece } from "../document/clipboard";
import { addFrame, moveNodes, moveNotes, removeElements } from "../document/edits";
import { useEditor } from "../editorContext";
import type { Drawing, OpenDialog } from "./drawing";
import { EMPTY_SELECTION, existingIn } from "./selection";
import { useDrawing } from "./useDrawing";

export interface Verbs extends Drawing {
  selectAll: () => void;
  remove: () => void;
  duplicate: () => void;
  copyText: () => string | null;
  paste: (text: string, at?: { x: number; y: number }) => void;
  tidy: () => void;
  tidyInRows: () => void;
  fold: () => void;
  /** Add a frame around the selected nodes; without a selection, at this position. */
  frame: (at: Point) => void;
  /** Message about the last action, or empty. */
  message: string;
  showMessage: (words: string) => void;
  isTidying: boolean;
}

export function useVerbs(picture: Picture, ask: (dialog: OpenDialog) => void, notes: NoteEditing | null): Verbs {
  const { t } = useTranslation();
  const { draft, store, canvas, selection: all, select } = useEditor();
  const drawing = useDrawing(ask, notes);
  const folding = useFolding();
  // The message disappears with the next change.
  const [shown, setShown] = useState<{ words: string; of: typeof draft.done } | null>(null);
  const statusText = shown?.of === draft.done ? shown.words : "";
  const tell = (words: string) => setShown({ words, of: store.getState().done });
  const [isTidying, setTidying] = useState(false);
  const definition = draft.shown;
  const selection = existingIn(all, definition);

  const put = (piece: Piece, at?: { x: number; y: number }) => {
    const { ids, changes } = pasteOperations(definition, canvas.positions(), piece, at);
    draft.act(...changes);
    select({ nodes: ids, edges: [] });
    canvas.reveal(ids);
  };
  const tidy = async (inRows: boolean) => {
    setTidying(true);
    tell("");
    try {
      const { tidyLayout } = await import("@/graph/layout/tidy");
      const stands = canvas.positions();
      const placed = placeNotes(picture.notes ?? [], stands);
      const places = await tidyLayout(withFrameRegions(picture, placed, stands), { stands, inRows });
      // The definition may have changed meanwhile: move only nodes that still exist.
      const now = store.getState();
      const changes = [
        ...moveNodes(now.shown, canvas.positions(), places),
        ...moveNotes(now.shown, placed, followBoxes(picture, placed, stands, places)),
      ];
      if (changes.length > 0) now.act(...changes);
      else tell(t("canvas.tidyAlready"));
      canvas.reveal([]);
    } catch {
      tell(t("canvas.tidyFailed"));
    } finally {
      setTidying(false);
    }
  };
  return {
    ...drawing,
    selectAll: () => select({ nodes: definition.nodes.map((node) => node.id), edges: edgeNames(definition.edges) }),
    remove: () => {
      const changes = removeElements(definition, selection);
      if (changes.length === 0) return;
      draft.act(...changes);
      select(EMPTY_SELECTION);
    },
    duplicate: () => {
      if (selection.nodes.length > 0) put(pieceOf(definition, selection.nodes, canvas.positions()));
    },
    copyText: () => {
      if (selection.nodes.length === 0) return null;
      tell(t("canvas.copied", { count: selection.nodes.length }));
      return pieceText(pieceOf(definition, selection.nodes, canvas.positions()));
    },
    paste: (text, at) => {
      const piece = readPiece(text);
      if (typeof piece === "string") tell(t(`refused.${piece}`));
      else {
        tell("");
        put(piece, at);
      }
    },
    tidy: () => void tidy(false),
    tidyInRows: () => void tidy(true),
    frame: (at) => {
      const sizes = new Map((picture.notes ?? []).map((one) => [one.id, one]));
      const framed = addFrame(definition, canvas.positions(), selection.nodes, sizes);
      if (!framed) return drawing.add({ type: "frame", at });
      draft.act(...framed.changes);
      select({ nodes: [framed.id], edges: [] });
      notes?.edit(framed.id);
    },
    fold: () => {
      for (const id of selection.nodes) {
        const around = (picture.regions ?? [])
          .filter((group) => group.id === id || group.members.includes(id))
          .sort((a, b) => Number(b.id === id) - Number(a.id === id) || a.members.length - b.members.length)[0];
        if (around) folding.toggle(around.id);
      }
    },
    message: statusText,
    showMessage: tell,
    isTidying,
  };
}
