/** Why a gate is closed: who answered it and how, as far as the journal has it. */
import { useTranslation } from "react-i18next";
import type { Execution, Gate } from "@/api/views";

type Closing = Execution["answers"][number];

/** The answer that closed this gate, not an earlier gate of the same step. */
export function closingOf(gate: Pick<Gate, "step" | "openedAt">, answers: readonly Closing[]): Closing | undefined {
  return answers.findLast((one) => one.step === gate.step && one.at >= gate.openedAt);
}

/** Returns null if the reason is unknown or the gate was not closed by an answer. */
export function useClosing(): (gate: Gate, execution: Execution) => string | null {
  const { t } = useTranslation();
  return (gate, execution) => {
    const closing = closingOf(gate, execution.answers);
    if (closing?.cause !== "answer") return null;
    const action = t(`action.${closing.action}`, closing.action);
    return closing.by ? t("gate.overBy", { by: closing.by, action }) : t("gate.overSo", { action });
  };
}
