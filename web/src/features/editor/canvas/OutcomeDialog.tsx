/** Choose the outcome that a new edge follows. */
import { CornerDownRight } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Chooser } from "@/components/Chooser";
import { Dialog } from "@/components/Dialog";
import { useNodeName } from "@/graph/model/nodeNames";
import type { Outcome } from "@/graph/model/outcomes";
import { outcomeName } from "@/graph/model/picture";
import type { AskedOutcome } from "./drawing";

export default function OutcomeDialog(props: {
  asked: AskedOutcome;
  onChoose: (outcome: Outcome) => void;
  onClose: () => void;
  restoreFocus: () => boolean;
}) {
  const { t, i18n } = useTranslation();
  const nameOf = useNodeName();
  const { source, outcomes, followed } = props.asked;
  const choices = outcomes.map((one) => {
    const leadsTo = followed.get(one.id);
    return {
      id: one.id,
      name: outcomeName(one, source, i18n.language, t),
      about: t(`outcomeAbout.${one.kind}`),
      icon: CornerDownRight,
      disabledReason: leadsTo === undefined ? undefined : t("outline.leads", { name: nameOf(leadsTo) }),
    };
  });
  return (
    <Dialog
      open
      onClose={props.onClose}
      title={t("connect.whichAnswer")}
      about={t("connect.whichAnswerOf", { name: nameOf(source.id) })}
      moveFocus={props.restoreFocus}
    >
      <Chooser
        label={t("connect.whichAnswer")}
        choices={choices}
        onChoose={(id) => props.onChoose(outcomes.find((one) => one.id === id) as Outcome)}
      />
    </Dialog>
  );
}
