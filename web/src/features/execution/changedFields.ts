/** Convert edited data into an update by top-level field; a removed field becomes null. */
import type { JsonObject } from "@/api/views";
import { changesIn } from "@/values/changes";

export function changedFields(before: JsonObject, after: JsonObject): JsonObject {
  const changed = new Set(changesIn(before, after).map((change) => String(change.path[0])));
  return Object.fromEntries([...changed].map((name) => [name, after[name] ?? null]));
}
