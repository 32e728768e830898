/** The input schemas of built-in workflows, with titles and descriptions in the language of the page. */
import type { Json, JsonObject } from "@/api/views";
import { objectOf } from "@/features/editor/document/shapes";

const TRANSLATED_FIELDS = ["title", "description"];

export function translatedInput(schema: JsonObject, translate: (sentence: string) => string): JsonObject {
  const properties = Object.entries(objectOf(schema.properties as Json)).map(([name, field]) => [
    name,
    Object.fromEntries(
      Object.entries(objectOf(field)).map(([key, value]) => [
        key,
        TRANSLATED_FIELDS.includes(key) && typeof value === "string" ? translate(value) : value,
      ]),
    ),
  ]);
  return { ...schema, properties: Object.fromEntries(properties) };
}
