/** What can be done with what is selected on the canvas: asked for by keys, menus, buttons and the outline alike. */

import { useState } from "react";
import { useTranslation } from "react-i18next";
import { edgeNames } from "@/graph/model/edgeNames";
import type { Picture } from "@/graph/model/picture";
import { useFolding } from "@/graph/render/folding";
import { type Piece, pasted, pieceOf, pieceText, readPiece } from "../document/clipboard";
import { type Adding, added, moved, removed } from "../document/edits";
import { useEditor } from "../editorContext";
import { NOTHING, stillThere } from "./selection";

export interface Verbs {
  add: (adding: Adding) => void;
  selectAll: () => void;
  remove: () => void;
  duplicate: () => void;
  copied: () => string | null;
  paste: (text: string, at?: { x: number; y: number }) => void;
  tidy: () => void;
  fold: () => void;
  /** What people are told of the last one, where there is something to tell. */
  told: string;
  tell: (words: string) => void;
  isTidying: boolean;
}

export function useVerbs(picture: Picture): Verbs {
  const { t } = useTranslation();
  const { draft, store, stage, selection: all, select, pick } = useEditor();
  const folding = useFolding();
  // What was told is of the past once something else is done.
  const [said, say] = useState<{ words: string; of: typeof draft.done } | null>(null);
  const told = said?.of === draft.done ? said.words : "";
  const tell = (words: string) => say({ words, of: store.getState().done });
  const [isTidying, setTidying] = useState(false);
  const definition = draft.shown;
  const selection = stillThere(all, definition);

  const put = (piece: Piece, at?: { x: number; y: number }) => {
    const { ids, changes } = pasted(definition, stage.places(), piece, at);
    draft.act(...changes);
    select({ nodes: ids, edges: [] });
    stage.reveal(ids);
  };
  const tidy = async () => {
    setTidying(true);
    tell("");
    try {
      const { tidyLayout } = await import("@/graph/layout/tidy");
      const places = await tidyLayout(picture, stage.places());
      // Whatever was changed meanwhile stays: only what still stands there is moved.
      const now = store.getState();
      const changes = moved(now.shown, stage.places(), places);
      if (changes.length > 0) now.act(...changes);
      else tell(t("canvas.tidyAlready"));
      stage.reveal([]);
    } catch {
      tell(t("canvas.tidyFailed"));
    } finally {
      setTidying(false);
    }
  };
  return {
    add: (adding) => {
      const { id, changes } = added(definition, stage.places(), adding);
      draft.act(...changes);
      pick({ kind: "node", id });
      stage.reveal([id]);
    },
    selectAll: () => select({ nodes: definition.nodes.map((node) => node.id), edges: edgeNames(definition.edges) }),
    remove: () => {
      const changes = removed(definition, selection);
      if (changes.length === 0) return;
      draft.act(...changes);
      select(NOTHING);
    },
    duplicate: () => {
      if (selection.nodes.length > 0) put(pieceOf(definition, selection.nodes, stage.places()));
    },
    copied: () => {
      if (selection.nodes.length === 0) return null;
      tell(t("canvas.copied", { count: selection.nodes.length }));
      return pieceText(pieceOf(definition, selection.nodes, stage.places()));
    },
    paste: (text, at) => {
      const piece = readPiece(text);
      if (typeof piece === "string") tell(t(`refused.${piece}`));
      else {
        tell("");
        put(piece, at);
      }
    },
    tidy: () => void tidy(),
    fold: () => {
      for (const id of selection.nodes) {
        const around = (picture.regions ?? [])
          .filter((group) => group.id === id || group.members.includes(id))
          .sort((a, b) => Number(b.id === id) - Number(a.id === id) || a.members.length - b.members.length)[0];
        if (around) folding.toggle(around.id);
      }
    },
    told,
    tell,
    isTidying,
  };
}
