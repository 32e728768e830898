import type { Json, JsonObject } from "@/api/views";

/** Return the agent with the field at a path changed. An empty value removes the field, and the objects around it that
 * become empty. */
export function changed(agent: JsonObject, path: readonly string[], value: Json | undefined): JsonObject {
  const [name, ...rest] = path;
  if (name === undefined) return agent;
  const inner = rest.length === 0 ? value : changed(objectOf(agent[name]), rest, value);
  const isEmpty = inner === undefined || (rest.length > 0 && Object.keys(objectOf(inner)).length === 0);
  if (!isEmpty) return { ...agent, [name]: inner };
  return Object.fromEntries(Object.entries(agent).filter(([key]) => key !== name));
}

export function objectOf(value: Json | undefined): JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}

/** The number in a text field; undefined for any other text. */
export function numberIn(text: string): number | undefined {
  const found = Number(text);
  return text.trim() === "" || !Number.isFinite(found) ? undefined : found;
}
