/** Widgets of the fields of a schema. */
import type { RJSFSchema, UiSchema } from "@rjsf/utils";

const ROWS = 3;
const LINE_MAX = 200;

/**
 * Long texts get a text area, lists of unique choices get checkboxes, untyped values a free text field. A list entry is
 * titled by its position, with the title from its schema or the generic word `entry`.
 */
export function layoutOf(schema: RJSFSchema, entry: string, isInner = false): UiSchema {
  if (isUntyped(schema)) return { "ui:field": "anything" };
  const found: UiSchema = {};
  if (isInner && isLong(schema)) return { "ui:widget": "textarea", "ui:options": { rows: 1 } };
  if (schema.type === "array" && schema.uniqueItems && isSchema(schema.items) && schema.items.enum)
    return { "ui:widget": "checkboxes" };
  if (schema.type === "array" && isSchema(schema.items)) {
    const each = layoutOf(schema.items, entry, true);
    const title = schema.items.title ?? entry;
    found.items = (_, index) => ({ ...each, "ui:title": `${title} ${index + 1}` });
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

/** A string without an indication that it is short. */
function isLong(schema: RJSFSchema): boolean {
  return schema.type === "string" && !schema.enum && !schema.format && (schema.maxLength ?? 1000) > LINE_MAX;
}

/** No type, several types, or a list of unspecified items. */
function isUntyped(schema: RJSFSchema): boolean {
  if (schema.enum || "const" in schema || schema.$ref || schema.oneOf || schema.anyOf || schema.allOf) return false;
  if (Array.isArray(schema.type)) return schema.type.filter((one) => one !== "null").length !== 1;
  if (schema.type === "array") return !schema.items;
  return schema.type === undefined && !schema.properties && !schema.additionalProperties;
}

function isSchema(value: unknown): value is RJSFSchema {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
