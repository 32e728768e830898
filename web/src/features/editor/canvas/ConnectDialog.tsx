/** To which node something leads; those that it cannot lead to say why. */
import { useTranslation } from "react-i18next";
import { Chooser } from "@/components/Chooser";
import { Dialog } from "@/components/Dialog";
import { useNodeName } from "@/graph/model/nodeNames";
import { pictureOf } from "@/graph/model/picture";
import { iconOf } from "@/graph/render/nodeIcons";
import { edgeCalled, turnedTo } from "../document/edits";
import { useEditor } from "../editorContext";
import { refusalsFrom } from "./connectionRules";
import { type Picked, selectionOf } from "./selection";

/** `from`: a node, which gets one more connection, or a connection, which is led elsewhere. */
export default function ConnectDialog(props: { from: Picked; onClose: () => void; goOn?: () => boolean }) {
  const { t, i18n } = useTranslation();
  const { draft, select } = useEditor();
  const called = useNodeName();
  const { from, onClose, goOn } = props;
  const definition = draft.shown;
  const source = from.kind === "node" ? from.id : (edgeCalled(definition, from.id)?.source ?? "");
  const refusals = refusalsFrom(definition, source, "source");
  const choices = pictureOf(definition, i18n.language, t).boxes.map((box) => {
    const why = refusals.get(box.id);
    return {
      id: box.id,
      name: box.name,
      about: t(`node.${box.type}`, box.type),
      icon: iconOf(box.type),
      refusal: why ? t(`connect.${why}`) : undefined,
    };
  });
  const lead = (target: string) => {
    if (from.kind === "node") draft.act({ op: "connect", edge: { source, target } });
    else {
      const changes = turnedTo(definition, from.id, { source, target });
      if (changes.length > 0) draft.act(...changes);
      select(selectionOf({ kind: "node", id: source }));
    }
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("outline.connect", { name: called(source) })}
      {...(goOn ? { moveFocus: goOn } : {})}
    >
      <Chooser label={t("outline.connectTo")} choices={choices} onChoose={lead} />
    </Dialog>
  );
}
