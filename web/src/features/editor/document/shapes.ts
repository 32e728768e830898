/** Choose the form control of each value in a definition from the JSON Schema of the document language. */
import type { Json, JsonObject } from "@/api/views";

/** Syntax of a formula field. */
export type FormulaSyntax = "expression" | "condition" | "template" | "path" | "jsonpath";
/** Kind of name that a text field references; the field offers the existing ones. */
export type NameKind = "node" | "agent" | "tool" | "model" | "workflow";

export type Control =
  | { kind: "text" | "long" | "boolean" | "duration" | "size" | "json" | "value" | "schema" | "words" }
  | { kind: "number"; least: number | null; most: number | null; isWhole: boolean }
  | { kind: "choice"; choices: string[] }
  | { kind: "choices"; choices: string[] }
  | { kind: "formula"; in: FormulaSyntax }
  | { kind: "formulas"; in: FormulaSyntax }
  | { kind: "rows"; in: FormulaSyntax | "value" }
  | { kind: "pick" | "picks"; of: NameKind }
  | { kind: "group"; fields: FieldShape[] }
  | { kind: "list"; fields: FieldShape[]; short: string | null }
  | { kind: "kinds"; kinds: { name: string; fields: FieldShape[] }[] }
  | { kind: "named"; fields: FieldShape[] };

export interface FieldShape {
  name: string;
  about: string;
  required: boolean;
  control: Control;
}

const NAME_KINDS = new Set<string>(["node", "agent", "tool", "model", "workflow"]);
const CONDITIONS = new Set(["while", "until", "when", "skipWhen", "match", "condition"]);
const SCHEMAS = new Set(["input", "inputs", "outputSchema", "schema", "form"]);
/** Objects whose text values are templates. */
const TEMPLATE_OBJECTS = new Set(["query", "parameters"]);
const ANYTHING = new Set(["value", "then", "else", "data", "body", "default"]);
const DEPTH_MAX = 6;

/** Fields of a node's configuration. */
export function configFields(schema: JsonObject, type: string): FieldShape[] {
  const definitions = objectOf(schema.$defs);
  const node = objectOf(definitions.Node);
  for (const rule of (node.allOf as JsonObject[] | undefined) ?? []) {
    const types = at(rule, "if", "properties", "type", "enum");
    if (!Array.isArray(types) || !types.includes(type)) continue;
    return fieldsOf(resolved(objectOf(at(rule, "then", "properties", "config")), definitions), definitions);
  }
  return [];
}

/** Fields of a named part of the language: `Node`, `Edge`, `Config`, `When` …; "" is the workflow. */
export function fieldsNamed(schema: JsonObject, name: string): FieldShape[] {
  const definitions = objectOf(schema.$defs);
  return fieldsOf(name ? objectOf(definitions[name]) : schema, definitions);
}

function fieldsOf(shape: JsonObject, definitions: JsonObject, depth = 0): FieldShape[] {
  const required = new Set((shape.required as string[] | undefined) ?? []);
  return Object.entries(objectOf(shape.properties)).map(([name, definition]) => {
    const field = objectOf(definition);
    return {
      name,
      about: typeof field.description === "string" ? field.description : "",
      required: required.has(name),
      control: depth > DEPTH_MAX ? { kind: "json" } : controlOf(name, field, definitions, depth),
    };
  });
}

function controlOf(name: string, field: JsonObject, definitions: JsonObject, depth: number): Control {
  const options = optionsOf(field, definitions);
  const marked = field["x-kind"] ?? options.find((one) => one["x-kind"])?.["x-kind"];
  const kind = typeof marked === "string" ? marked : "";
  const list = options.find((one) => one.type === "array");
  if (list) return listOf(name, list, definitions, depth);
  const rows = options.find((one) => one.type === "object" && one.additionalProperties && !one.properties);
  const isText = options.some((one) => one.type === "string");
  if (rows && !isText) return rowsOf(name, objectOf(rows.additionalProperties), definitions, depth);
  const inner = rows ? objectOf(rows.additionalProperties)["x-kind"] : undefined;
  if (inner === "expression") return { kind: "rows", in: "expression" };
  if (NAME_KINDS.has(kind)) return { kind: "pick", of: kind as NameKind };
  if (kind) return { kind: "formula", in: syntaxOf(name, kind) };
  const group = options.find((one) => one.properties);
  if (group) return { kind: "group", fields: fieldsOf(group, definitions, depth + 1) };
  return scalarControl(name, options, rows !== undefined);
}

function scalarControl(name: string, options: JsonObject[], isLocalized: boolean): Control {
  const first = options[0] ?? {};
  const choices = options.flatMap(
    (one) => (one.enum as string[] | undefined) ?? (one.const ? [String(one.const)] : []),
  );
  if (choices.length > 0 && !isLocalized) return { kind: "choice", choices };
  const pattern = options.map((one) => one.pattern).find((one) => typeof one === "string" && one.includes("\\s*("));
  if (options.some((one) => String(one.pattern ?? "").includes("ms|s|min"))) return { kind: "duration" };
  if (pattern !== undefined) return { kind: "size" };
  if (options.some((one) => one.type === "string"))
    return { kind: name === "text" || name === "description" || name === "source" ? "long" : "text" };
  if (first.type === "number" || first.type === "integer")
    return {
      kind: "number",
      least: typeof first.minimum === "number" ? first.minimum : null,
      most: typeof first.maximum === "number" ? first.maximum : null,
      isWhole: first.type === "integer",
    };
  if (first.type === "boolean") return { kind: "boolean" };
  return { kind: ANYTHING.has(name) ? "value" : "json" };
}

function listOf(name: string, list: JsonObject, definitions: JsonObject, depth: number): Control {
  const items = optionsOf(objectOf(list.items), definitions);
  const kind = items.find((one) => one["x-kind"])?.["x-kind"];
  if (typeof kind === "string" && NAME_KINDS.has(kind)) return { kind: "picks", of: kind as NameKind };
  if (typeof kind === "string") return { kind: "formulas", in: syntaxOf(name, kind) };
  const groups = items.filter((one) => one.properties);
  const [first] = groups;
  if (first && groups.length === 1) {
    const isShort = items.some((one) => one.type === "string");
    const required = (first.required as string[] | undefined)?.[0] ?? null;
    return { kind: "list", fields: fieldsOf(first, definitions, depth + 1), short: isShort ? required : null };
  }
  if (groups.length > 1) {
    const kinds = groups.map((one) => ({
      name: String((one.required as string[] | undefined)?.[0] ?? one.title),
      fields: fieldsOf(one, definitions, depth + 1),
    }));
    return { kind: "kinds", kinds };
  }
  const choices = items.flatMap((one) => (one.enum as string[] | undefined) ?? []);
  if (choices.length > 0) return { kind: "choices", choices };
  return items.some((one) => one.type === "string") ? { kind: "words" } : { kind: "json" };
}

function rowsOf(name: string, inner: JsonObject, definitions: JsonObject, depth: number): Control {
  const value = resolved(inner, definitions);
  if (value["x-kind"] === "expression" || value["x-kind"] === "template")
    return { kind: "rows", in: value["x-kind"] as FormulaSyntax };
  if (value.properties) return { kind: "named", fields: fieldsOf(value, definitions, depth + 1) };
  if (SCHEMAS.has(name)) return { kind: "schema" };
  return TEMPLATE_OBJECTS.has(name) || name === "defaults" || name === "settings"
    ? { kind: "rows", in: "value" }
    : { kind: "json" };
}

function syntaxOf(name: string, kind: string): FormulaSyntax {
  return kind === "expression" && CONDITIONS.has(name) ? "condition" : (kind as FormulaSyntax);
}

function optionsOf(field: JsonObject, definitions: JsonObject): JsonObject[] {
  return ((field.anyOf as JsonObject[] | undefined) ?? [field])
    .map((one) => resolved(one, definitions))
    .filter((one) => one.type !== "null");
}

function resolved(shape: JsonObject, definitions: JsonObject): JsonObject {
  const options = (shape.anyOf as JsonObject[] | undefined)?.filter((one) => one.type !== "null");
  if (options?.length === 1 && options[0]) return resolved(options[0], definitions);
  const name = typeof shape.$ref === "string" ? shape.$ref.split("/").at(-1) : undefined;
  return name ? objectOf(definitions[name]) : shape;
}

export function objectOf(value: Json | undefined): JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}

function at(value: JsonObject, ...path: string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const part of path) found = objectOf(found)[part];
  return found;
}
