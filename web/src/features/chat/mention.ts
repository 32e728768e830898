/** `@workflow` at the start of a message addresses another workflow. */
import { textIn } from "@/i18n";
import type { Speaker } from "./sessions";

const BEGUN = /^@([\w:.-]*)$/;
const MENTION = /^@([\w:.-]+)\s+([\s\S]*)$/;

export function nameOf(speaker: Speaker, language: string): string {
  return textIn(speaker.name, language, speaker.id);
}

/** The typed part of an unfinished mention; null if there is none. */
export const begunIn = (text: string): string | null => BEGUN.exec(text)?.[1] ?? null;

/** Ids that the mention can refer to, as typed and in lower case. */
export function idsIn(text: string): string[] {
  const id = MENTION.exec(text)?.[1];
  return id ? [...new Set([id, id.toLowerCase()])] : [];
}

/** The workflows to offer while a mention is typed; null if none is being typed. */
export function offered(text: string, speakers: readonly Speaker[], language: string): Speaker[] | null {
  const wanted = begunIn(text)?.toLowerCase();
  if (wanted === undefined) return null;
  return speakers.filter((one) => `${one.id} ${nameOf(one, language)}`.toLowerCase().includes(wanted)).slice(0, 8);
}

/** Split a message into the mentioned workflow and the text. An unknown mention stays part of the text. */
export function addressed(text: string, speakers: readonly Speaker[]): { speaker: Speaker | null; words: string } {
  const found = MENTION.exec(text);
  const speaker = found ? speakers.find((one) => one.id.toLowerCase() === found[1]?.toLowerCase()) : undefined;
  return found && speaker ? { speaker, words: (found[2] ?? "").trim() } : { speaker: null, words: text.trim() };
}
