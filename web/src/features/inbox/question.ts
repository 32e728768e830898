/** What a gate asks, in the language of the page: as its workflow says it, and in words of the app where the server asks. */
import type { TFunction } from "i18next";
import { textIn } from "@/i18n";

interface Asking {
  message: string;
  messages?: Record<string, string> | null;
}

/** How the server asks where the workflow says nothing. */
const OURS = {
  start: /^May ["'].+["'] start\?$/,
  call: /^May ["'].+["'] call (?<tools>["'].+["'])\?$/,
  came: /^["'].+["'] calls (?<tools>["'].+["']): what came of it\?$/,
} as const;

export function questionOf(gate: Asking, node: string, language: string, t: TFunction): string {
  const said = textIn(gate.messages ?? gate.message, language, node).trim();
  for (const [kind, pattern] of Object.entries(OURS)) {
    const found = pattern.exec(said);
    if (found) return t(`gate.asksFor.${kind}`, { node, tools: found.groups?.tools?.replaceAll(/["']/g, "") ?? "" });
  }
  return said;
}
