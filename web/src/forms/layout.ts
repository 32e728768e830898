/** How each field of a schema is asked for. */
import type { RJSFSchema, UiSchema } from "@rjsf/utils";

const ROWS = 3;
const LINE_MAX = 200;

/**
 * Long texts get room, and several of a few are ticked; what says nothing of its type is written as text. An entry of a
 * list is called by its place: as its schema says, else by the word for one.
 */
export function layoutOf(schema: RJSFSchema, entry: string, isInner = false): UiSchema {
  if (isUntold(schema)) return { "ui:field": "anything" };
  const found: UiSchema = {};
  if (isInner && isLong(schema)) return { "ui:widget": "textarea", "ui:options": { rows: 1 } };
  if (schema.type === "array" && schema.uniqueItems && isSchema(schema.items) && schema.items.enum)
    return { "ui:widget": "checkboxes" };
  if (schema.type === "array" && isSchema(schema.items)) {
    const each = layoutOf(schema.items, entry, true);
    const called = schema.items.title ?? entry;
    found.items = (_, index) => ({ ...each, "ui:title": `${called} ${index + 1}` });
  }
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    if (!isSchema(part)) continue;
    found[name] =
      !isInner && isLong(part)
        ? { "ui:widget": "textarea", "ui:options": { rows: ROWS } }
        : layoutOf(part, entry, true);
  }
  return found;
}

/** A text of which nothing says that it is short. */
function isLong(schema: RJSFSchema): boolean {
  return schema.type === "string" && !schema.enum && !schema.format && (schema.maxLength ?? 1000) > LINE_MAX;
}

/** Of none or of several types, or a list of who knows what. */
function isUntold(schema: RJSFSchema): boolean {
  if (schema.enum || "const" in schema || schema.$ref || schema.oneOf || schema.anyOf || schema.allOf) return false;
  if (Array.isArray(schema.type)) return schema.type.filter((one) => one !== "null").length !== 1;
  if (schema.type === "array") return !schema.items;
  return schema.type === undefined && !schema.properties && !schema.additionalProperties;
}

function isSchema(value: unknown): value is RJSFSchema {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
