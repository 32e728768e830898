/** The messages that a step sends to a model before its first answer, from the input of the step. */
import type { Json, JsonObject } from "@/api/views";
import { isObject } from "@/values/changes";

export interface SentMessage {
  role: string;
  content: Json;
}

const OWN = ["system", "messages", "prompt"];

export function messagesIn(input: JsonObject | null | undefined): SentMessage[] {
  if (!input || OWN.every((key) => input[key] === undefined)) return [];
  const earlier = Array.isArray(input.messages) ? input.messages : [];
  return [
    ...(input.system ? [{ role: "system", content: input.system }] : []),
    ...earlier.filter(isObject).map((one) => ({ role: String(one.role ?? ""), content: one.content ?? null })),
    ...(input.prompt ? [{ role: "user", content: input.prompt }] : []),
  ];
}

/** The parts of the input that are not messages. */
export function otherInput(input: JsonObject): JsonObject | null {
  const rest = Object.entries(input).filter(([key]) => !OWN.includes(key));
  return rest.length > 0 ? Object.fromEntries(rest) : null;
}
