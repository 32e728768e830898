/** What is wrong with a text, at its place: in the language of the page where its code has words, and as the server says it. */
import type { Diagnostic } from "@codemirror/lint";

interface Wrong {
  message: string;
  hint?: string | undefined;
  /** What its code means; null in English, and where it has no words. */
  meaning: string | null;
}

export function remarkOf({ message, hint, meaning }: Wrong): Pick<Diagnostic, "message" | "renderMessage"> {
  const said = [message, hint ?? ""].filter(Boolean).join("\n");
  if (meaning === null) return { message: said };
  return { message: `${meaning}\n${said}`, renderMessage: () => spoken(meaning, said) };
}

function spoken(meaning: string, said: string): Node {
  const exactly = document.createElement("span");
  exactly.lang = "en";
  exactly.textContent = said;
  const whole = document.createElement("span");
  whole.append(`${meaning}\n`, exactly);
  return whole;
}
