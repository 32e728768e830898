/** The question of a gate in the language of the page: the workflow's text, or a translation of the server's default
 * question. */
import type { TFunction } from "i18next";
import { textIn } from "@/i18n";

interface GateQuestion {
  message: string;
  messages?: Record<string, string> | null;
}

/** The server's default questions. */
const DEFAULT_QUESTIONS = {
  start: /^May ["'].+["'] start\?$/,
  call: /^May ["'].+["'] call (?<tools>["'].+["'])\?$/,
  came: /^["'].+["'] calls (?<tools>["'].+["']): what came of it\?$/,
} as const;

export function questionOf(gate: GateQuestion, node: string, language: string, t: TFunction): string {
  const question = textIn(gate.messages ?? gate.message, language, node).trim();
  for (const [kind, pattern] of Object.entries(DEFAULT_QUESTIONS)) {
    const found = pattern.exec(question);
    if (found) return t(`gate.asksFor.${kind}`, { node, tools: found.groups?.tools?.replaceAll(/["']/g, "") ?? "" });
  }
  return question;
}
