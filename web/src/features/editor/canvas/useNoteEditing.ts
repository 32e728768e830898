/** Edit notes and frames on the canvas; null without the right to change the workflow. */
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import type { NoteEditing } from "@/graph/render/noteEditing";
import { resizeNote } from "../document/edits";
import { useEditor } from "../editorContext";

export function useNoteEditing(): NoteEditing | null {
  const { i18n } = useTranslation();
  const { store, canvas, mayChange } = useEditor();
  const [edited, setEdited] = useState<string | null>(null);
  const { language } = i18n;
  return useMemo(() => {
    if (!mayChange) return null;
    const { act, type } = store.getState();
    const configOf = (id: string) => store.getState().shown.nodes.find((node) => node.id === id)?.config ?? {};
    return {
      edited,
      edit: setEdited,
      end: () => {
        setEdited(null);
        canvas.focus();
      },
      write: (id, text) =>
        type({ op: "change_node", node: id, ...textChange(configOf(id).text, text, language) }, "canvas"),
      paint: (id, color) => act({ op: "change_node", node: id, set: { "/config/color": color } }),
      resize: (id, to) => act(resizeNote(id, to)),
    };
  }, [store, canvas, mayChange, edited, language]);
}

/** A text in several languages is changed in the language of the page. */
function textChange(old: Json | undefined, text: string, language: string) {
  const isLocalized = typeof old === "object" && old !== null;
  if (isLocalized) return { set: { [`/config/text/${language}`]: text } };
  return text ? { set: { "/config/text": text } } : { remove: ["/config/text"] };
}
