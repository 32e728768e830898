/** What answers are called: those at gates as the workflow says it, else as their actions are in the app; yes and no of a decision. */
import type { TFunction } from "i18next";
import type { DefinitionNode, Json, Text } from "@/api/views";
import { textIn } from "@/i18n";
import { isObject } from "@/values/changes";

/** What a node offers to whoever it asks; nothing, where it asks nobody. */
export function offeredBy(node: DefinitionNode | undefined): Json[] {
  if (node?.type !== "human" && node?.type !== "checkpoint") return [];
  return [node.config?.options, node.config?.actions].flatMap((list) => (Array.isArray(list) ? list : []));
}

export function answerName(node: DefinitionNode | undefined, value: string, language: string, t: TFunction): string {
  if (node?.type === "decision" || node?.type === "conditional")
    return value === "true" || value === "false" ? t(`arrow.${value}`) : value;
  if (node?.type !== "human" && node?.type !== "checkpoint") return value;
  const offered = offeredBy(node).find((one) => isObject(one) && one.value === value);
  return actionName(value, isObject(offered) ? (offered.label as Text | undefined) : undefined, language, t);
}

/** An action for which its workflow has no words of its own is called as the app calls it. */
export function actionName(value: string, label: Text | null | undefined, language: string, t: TFunction): string {
  const said = textIn(label, language, value);
  return said.toLowerCase() === value ? t(`action.${value}`, said) : said;
}
