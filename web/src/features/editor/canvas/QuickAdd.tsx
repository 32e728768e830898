/** Choose what to add by typing its name: a node type, a tool, an agent or a saved workflow. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Chooser } from "@/components/Chooser";
import { Dialog } from "@/components/Dialog";
import { usePaletteGroups } from "./usePaletteGroups";

export default function QuickAdd(props: {
  onAdd: (type: string) => void;
  onClose: () => void;
  restoreFocus?: () => boolean;
}) {
  const { t } = useTranslation();
  const [words, search] = useState("");
  const groups = usePaletteGroups(words);
  const choices = groups.flatMap(({ label, choices }) => choices.map((one) => ({ ...one, group: label })));
  return (
    <Dialog
      open
      onClose={props.onClose}
      title={t("canvas.addTitle")}
      {...(props.restoreFocus ? { moveFocus: props.restoreFocus } : {})}
    >
      <Chooser label={t("canvas.addWhat")} choices={choices} onChoose={props.onAdd} onSearch={search} />
    </Dialog>
  );
}
