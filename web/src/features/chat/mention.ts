/** `@workflow` at the beginning of a message: whom it is for. */
import { textIn } from "@/i18n";
import type { Speaker } from "./sessions";

const BEGUN = /^@([\w:.-]*)$/;
const MENTION = /^@([\w:.-]+)\s+([\s\S]*)$/;

export function nameOf(speaker: Speaker, language: string): string {
  return textIn(speaker.name, language, speaker.id);
}

/** What is typed of a mention that is not ended yet; null: none is begun. */
export const begunIn = (text: string): string | null => BEGUN.exec(text)?.[1] ?? null;

/** Who a message may be for, as somebody wrote it. */
export function idsIn(text: string): string[] {
  const id = MENTION.exec(text)?.[1];
  return id ? [...new Set([id, id.toLowerCase()])] : [];
}

/** Who is offered while a mention is typed; null: none is. */
export function offered(text: string, speakers: readonly Speaker[], language: string): Speaker[] | null {
  const wanted = begunIn(text)?.toLowerCase();
  if (wanted === undefined) return null;
  return speakers.filter((one) => `${one.id} ${nameOf(one, language)}`.toLowerCase().includes(wanted)).slice(0, 8);
}

/** Whom a message is for, and what it says without the mention. One of nobody is a message like any other. */
export function addressed(text: string, speakers: readonly Speaker[]): { speaker: Speaker | null; words: string } {
  const found = MENTION.exec(text);
  const speaker = found ? speakers.find((one) => one.id.toLowerCase() === found[1]?.toLowerCase()) : undefined;
  return found && speaker ? { speaker, words: (found[2] ?? "").trim() } : { speaker: null, words: text.trim() };
}
