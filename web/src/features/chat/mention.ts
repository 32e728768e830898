/** `@workflow` at the start of a message addresses another workflow. */
import { textIn } from "@/i18n";
import type { ChatWorkflow } from "./sessions";

const UNFINISHED_MENTION = /^@([\w:.-]*)$/;
const MENTION = /^@([\w:.-]+)\s+([\s\S]*)$/;

export function nameOf(workflow: ChatWorkflow, language: string): string {
  return textIn(workflow.name, language, workflow.id);
}

/** The typed part of an unfinished mention; null if there is none. */
export const unfinishedMentionIn = (text: string): string | null => UNFINISHED_MENTION.exec(text)?.[1] ?? null;

/** Ids that the mention can refer to, as typed and in lower case. */
export function idsIn(text: string): string[] {
  const id = MENTION.exec(text)?.[1];
  return id ? [...new Set([id, id.toLowerCase()])] : [];
}

/** The workflows to offer while a mention is typed; null if none is being typed. */
export function workflowsToOffer(
  text: string,
  workflows: readonly ChatWorkflow[],
  language: string,
): ChatWorkflow[] | null {
  const typed = unfinishedMentionIn(text)?.toLowerCase();
  if (typed === undefined) return null;
  return workflows.filter((one) => `${one.id} ${nameOf(one, language)}`.toLowerCase().includes(typed)).slice(0, 8);
}

/** Split a message into the mentioned workflow and the text. An unknown mention stays part of the text. */
export function splitMention(
  text: string,
  workflows: readonly ChatWorkflow[],
): { workflow: ChatWorkflow | null; text: string } {
  const found = MENTION.exec(text);
  const workflow = found ? workflows.find((one) => one.id.toLowerCase() === found[1]?.toLowerCase()) : undefined;
  return found && workflow
    ? { workflow: workflow, text: (found[2] ?? "").trim() }
    : { workflow: null, text: text.trim() };
}
