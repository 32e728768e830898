/** Convert a JSON Schema to rows for display: one for each field, with the fields of objects and list items below. */
import type { Json, JsonObject } from "@/api/views";

export interface SchemaRow {
  /** As in `address.street` or `lines[].price`. */
  path: string;
  type: string;
  required: boolean;
  about: string;
  choices: Json[];
  defaultValue: Json | undefined;
}

const DEPTH_MAX = 6;

export function rowsOf(schema: JsonObject): SchemaRow[] {
  const found: SchemaRow[] = [];
  addRows(found, resolve(schema, schema), schema, "", 0);
  return found;
}

function addRows(found: SchemaRow[], shape: JsonObject, root: JsonObject, path: string, depth: number): void {
  const required = Array.isArray(shape.required) ? shape.required : [];
  for (const [name, property] of Object.entries(objectOf(shape.properties))) {
    const part = resolve(objectOf(property), root);
    const at = path ? `${path}.${name}` : name;
    found.push({
      path: at,
      type: typeOf(part, root),
      required: required.includes(name),
      about: typeof part.description === "string" ? part.description : "",
      choices: Array.isArray(part.enum) ? part.enum : part.const === undefined ? [] : [part.const],
      defaultValue: part.default,
    });
    if (depth >= DEPTH_MAX) continue;
    const items = resolve(objectOf(part.items), root);
    if (part.properties) addRows(found, part, root, at, depth + 1);
    else if (items.properties) addRows(found, items, root, `${at}[]`, depth + 1);
  }
}

/** Resolve a `$ref` within the schema, and unwrap a union with null. */
function resolve(shape: JsonObject, root: JsonObject): JsonObject {
  if (typeof shape.$ref === "string" && shape.$ref.startsWith("#/")) {
    let target: Json | undefined = root;
    for (const part of shape.$ref.slice(2).split("/"))
      target = objectOf(target)[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    return { ...objectOf(target), ...without(shape, "$ref") };
  }
  const options = choicesOf(shape);
  const only = options.filter((one) => one.type !== "null");
  if (options.length > 0 && only.length === 1 && only[0])
    return { ...resolve(only[0], root), ...without(shape, "anyOf", "oneOf") };
  return shape;
}

function typeOf(shape: JsonObject, root: JsonObject): string {
  const options = choicesOf(shape);
  if (options.length > 0) return [...new Set(options.map((one) => typeOf(resolve(one, root), root)))].join(" | ");
  if (Array.isArray(shape.type)) return shape.type.join(" | ");
  if (shape.type === "array") {
    const items = objectOf(shape.items);
    return Object.keys(items).length > 0 ? `${typeOf(resolve(items, root), root)}[]` : "array";
  }
  if (typeof shape.type === "string")
    return typeof shape.format === "string" ? `${shape.type} (${shape.format})` : shape.type;
  return shape.properties ? "object" : "any";
}

function choicesOf(shape: JsonObject): JsonObject[] {
  const options = shape.anyOf ?? shape.oneOf;
  return Array.isArray(options) ? options.map(objectOf) : [];
}

function without(shape: JsonObject, ...names: string[]): JsonObject {
  return Object.fromEntries(Object.entries(shape).filter(([name]) => !names.includes(name)));
}

function objectOf(value: Json | undefined): JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}
