/** The input schemas of built-in workflows, with titles and descriptions in the language of the page. */
import type { Json, JsonObject } from "@/api/views";
import { objectOf } from "@/features/editor/document/shapes";

const SAID = ["title", "description"];

export function askedIn(schema: JsonObject, say: (sentence: string) => string): JsonObject {
  const properties = Object.entries(objectOf(schema.properties as Json)).map(([name, field]) => [
    name,
    Object.fromEntries(
      Object.entries(objectOf(field)).map(([key, value]) => [
        key,
        SAID.includes(key) && typeof value === "string" ? say(value) : value,
      ]),
    ),
  ]);
  return { ...schema, properties: Object.fromEntries(properties) };
}
