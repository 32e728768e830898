/** Why a question waits no more: who answered it and how, as far as the journal tells. */
import { useTranslation } from "react-i18next";
import type { Execution, Gate } from "@/api/views";

type Closing = Execution["answers"][number];

/** What closed it; of a step that asked before, not what closed that. */
export function closingOf(gate: Pick<Gate, "step" | "openedAt">, answers: readonly Closing[]): Closing | undefined {
  return answers.findLast((one) => one.step === gate.step && one.at >= gate.openedAt);
}

/** Null: that is not known, or nobody did. */
export function useClosing(): (gate: Gate, execution: Execution) => string | null {
  const { t } = useTranslation();
  return (gate, execution) => {
    const closing = closingOf(gate, execution.answers);
    if (closing?.cause !== "answer") return null;
    const action = t(`action.${closing.action}`, closing.action);
    return closing.by ? t("gate.overBy", { by: closing.by, action }) : t("gate.overSo", { action });
  };
}
