/** Text of a diagnostic: the translated meaning of its code if there is one, and the server's message. */
import type { Diagnostic } from "@codemirror/lint";

interface FoundProblem {
  message: string;
  hint?: string | undefined;
  /** Translated meaning of the code; null in English and for unknown codes. */
  meaning: string | null;
}

export function diagnosticText({
  message,
  hint,
  meaning,
}: FoundProblem): Pick<Diagnostic, "message" | "renderMessage"> {
  const original = [message, hint ?? ""].filter(Boolean).join("\n");
  if (meaning === null) return { message: original };
  return { message: `${meaning}\n${original}`, renderMessage: () => renderMessage(meaning, original) };
}

function renderMessage(meaning: string, said: string): Node {
  const quoted = document.createElement("span");
  quoted.lang = "en";
  quoted.textContent = said;
  const whole = document.createElement("span");
  whole.append(`${meaning}\n`, quoted);
  return whole;
}
