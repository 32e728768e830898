/** Search for nodes by id, name, type or any field. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Definition } from "@/api/views";
import { Chooser } from "@/components/Chooser";
import { Dialog } from "@/components/Dialog";
import { iconOf } from "@/graph/render/nodeIcons";
import { textIn } from "@/i18n";

const SEARCH_TEXT_MAX = 20_000;

export default function Finder(props: {
  definition: Definition;
  onMove: (id: string) => void;
  onChoose: (id: string) => void;
  onClose: () => void;
  restoreFocus: () => boolean;
}) {
  const { t, i18n } = useTranslation();
  const { definition } = props;
  const choices = useMemo(
    () =>
      definition.nodes.map(({ id, type, name, position: _, ...says }) => ({
        id,
        name: textIn(name, i18n.language, id),
        about: t(`node.${type}`, type),
        code: id,
        icon: iconOf(type),
        text: JSON.stringify(says).slice(0, SEARCH_TEXT_MAX),
      })),
    [definition, i18n.language, t],
  );
  return (
    <Dialog open onClose={props.onClose} title={t("canvas.find")} moveFocus={props.restoreFocus}>
      <Chooser label={t("canvas.findWhat")} choices={choices} onChoose={props.onChoose} onMove={props.onMove} />
    </Dialog>
  );
}
