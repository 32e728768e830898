/** Choose a node type by typing its name. */
import { useTranslation } from "react-i18next";
import { Chooser } from "@/components/Chooser";
import { Dialog } from "@/components/Dialog";
import { iconOf } from "@/graph/render/nodeIcons";
import { PALETTE } from "../document/palette";

export default function QuickAdd(props: {
  onAdd: (type: string) => void;
  onClose: () => void;
  restoreFocus?: () => boolean;
}) {
  const { t } = useTranslation();
  const choices = PALETTE.map((type) => ({
    id: type,
    name: t(`node.${type}`),
    about: t(`nodeAbout.${type}`),
    icon: iconOf(type),
  }));
  return (
    <Dialog
      open
      onClose={props.onClose}
      title={t("canvas.addTitle")}
      {...(props.restoreFocus ? { moveFocus: props.restoreFocus } : {})}
    >
      <Chooser label={t("canvas.addWhat")} choices={choices} onChoose={props.onAdd} />
    </Dialog>
  );
}
