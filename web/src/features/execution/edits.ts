/** Edited data as the fields that are put into it: each at its top, and what was taken out as null. */
import type { JsonObject } from "@/api/views";
import { changesIn } from "@/values/changes";

export function fieldsSet(before: JsonObject, after: JsonObject): JsonObject {
  const touched = new Set(changesIn(before, after).map((change) => String(change.path[0])));
  return Object.fromEntries([...touched].map((name) => [name, after[name] ?? null]));
}
