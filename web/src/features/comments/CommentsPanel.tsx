import { useTranslation } from "react-i18next";
import { textIn } from "@/i18n";
import { useEditor } from "../editor/editorContext";
import { Comments } from "./Comments";

/** The panel of the editor with the comments on the workflow, or on the selected node. */
export default function CommentsPanel() {
  const { i18n } = useTranslation();
  const { id, draft, picked, pick } = useEditor();
  const nameOf = (place: string) =>
    textIn(draft.shown.nodes.find((one) => one.id === place)?.name, i18n.language, place);
  return (
    <Comments
      subject={{ kind: "workflow", id }}
      place={picked?.kind === "node" ? picked.id : null}
      nameOf={nameOf}
      onPlace={(place) => pick({ kind: "node", id: place })}
    />
  );
}
