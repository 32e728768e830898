import type { Json, JsonObject } from "@/api/views";

/** The description with one field changed, however deep; emptied, it is gone, and so is an object without fields. */
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

/** What a field of numbers holds. */
export function numberIn(text: string): number | undefined {
  const found = Number(text);
  return text.trim() === "" || !Number.isFinite(found) ? undefined : found;
}
