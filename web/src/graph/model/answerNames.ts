/**
 * Display names of answers: the label from the workflow, otherwise the app's name of the action. Decisions answer yes
 * or no.
 */
import type { TFunction } from "i18next";
import type { DefinitionNode, Json, Text } from "@/api/views";
import { textIn } from "@/i18n";
import { isObject } from "@/values/changes";

/** The answers that a human task offers; empty for other nodes. */
export function answersOfferedBy(node: DefinitionNode | undefined): Json[] {
  if (node?.type !== "human" && node?.type !== "checkpoint") return [];
  return [node.config?.options, node.config?.actions].flatMap((list) => (Array.isArray(list) ? list : []));
}

export function answerName(node: DefinitionNode | undefined, value: string, language: string, t: TFunction): string {
  if (node?.type === "decision" || node?.type === "conditional")
    return value === "true" || value === "false" ? t(`arrow.${value}`) : value;
  if (node?.type !== "human" && node?.type !== "checkpoint") return value;
  const offered = answersOfferedBy(node).find((one) => isObject(one) && one.value === value);
  return actionName(value, isObject(offered) ? (offered.label as Text | undefined) : undefined, language, t);
}

/** The workflow's label for an action, otherwise the app's name for it. */
export function actionName(value: string, label: Text | null | undefined, language: string, t: TFunction): string {
  const name = textIn(label, language, value);
  return name.toLowerCase() === value ? t(`action.${value}`, name) : name;
}
