/** Choose the target of a connection; nodes that cannot be targets show the reason. */
import { useTranslation } from "react-i18next";
import { Chooser } from "@/components/Chooser";
import { Dialog } from "@/components/Dialog";
import { useNodeName } from "@/graph/model/nodeNames";
import { pictureOf } from "@/graph/model/picture";
import { iconOf } from "@/graph/render/nodeIcons";
import { edgeNamed, reconnectEdge } from "../document/edits";
import { useEditor } from "../editorContext";
import { refusalsFrom } from "./connectionRules";
import { type Picked, selectionOf } from "./selection";

/** `from`: a node, which gets a new edge, or an edge, which gets a new target. */
export default function ConnectDialog(props: {
  from: Picked;
  onClose: () => void;
  restoreFocus?: () => boolean;
  /** Moves the focus after a question about the answer, if not to the canvas. */
  focus?: () => void;
}) {
  const { t, i18n } = useTranslation();
  const { draft, select, canvas } = useEditor();
  const nameOf = useNodeName();
  const { from, onClose, restoreFocus } = props;
  const definition = draft.shown;
  const source = from.kind === "node" ? from.id : (edgeNamed(definition, from.id)?.source ?? "");
  const refusals = refusalsFrom(definition, source, "source");
  const choices = pictureOf(definition, i18n.language, t).boxes.map((box) => {
    const why = refusals.get(box.id);
    return {
      id: box.id,
      name: box.name,
      about: t(`node.${box.type}`, box.type),
      icon: iconOf(box.type),
      disabledReason: why ? t(`connect.${why}`) : undefined,
    };
  });
  const lead = (target: string) => {
    onClose();
    if (from.kind === "node") canvas.drawing().connect(source, target, null, props.focus);
    else {
      const changes = reconnectEdge(definition, from.id, { source, target });
      if (changes.length > 0) draft.act(...changes);
      select(selectionOf({ kind: "node", id: source }));
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("outline.connect", { name: nameOf(source) })}
      {...(restoreFocus ? { moveFocus: restoreFocus } : {})}
    >
      <Chooser label={t("outline.connectTo")} choices={choices} onChoose={lead} />
    </Dialog>
  );
}
