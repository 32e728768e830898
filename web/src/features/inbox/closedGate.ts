/** Why a gate is closed: the user who answered it and the answer, as far as the journal has it. */
import { useTranslation } from "react-i18next";
import type { Execution, Gate } from "@/api/views";

type GateAnswerRecord = Execution["answers"][number];

/** The answer that closed this gate, not an earlier gate of the same step. */
export function closingAnswerOf(
  gate: Pick<Gate, "step" | "openedAt">,
  answers: readonly GateAnswerRecord[],
): GateAnswerRecord | undefined {
  return answers.findLast((one) => one.step === gate.step && one.at >= gate.openedAt);
}

/** Returns null if the reason is unknown or the gate was not closed by an answer. */
export function useClosedReason(): (gate: Gate, execution: Execution) => string | null {
  const { t } = useTranslation();
  return (gate, execution) => {
    const answer = closingAnswerOf(gate, execution.answers);
    if (answer?.cause !== "answer") return null;
    const action = t(`action.${answer.action}`, answer.action);
    return answer.by ? t("gate.overBy", { by: answer.by, action }) : t("gate.overSo", { action });
  };
}
