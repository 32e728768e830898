/** The language as its JSON Schema tells: which types of nodes there are, and what each of them takes. */
import type { Json, JsonObject } from "@/api/views";

export interface FieldShape {
  name: string;
  about: string;
  control: "text" | "long" | "number" | "boolean" | "choice" | "words" | "json";
  choices: string[];
  required: boolean;
}

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

export function fieldsOf(shape: JsonObject, definitions: JsonObject): FieldShape[] {
  const required = new Set((shape.required as string[] | undefined) ?? []);
  return Object.entries(objectOf(shape.properties)).map(([name, told]) => {
    const field = objectOf(told);
    return {
      name,
      about: typeof field.description === "string" ? field.description : "",
      required: required.has(name),
      ...controlOf(field, definitions),
    };
  });
}

function controlOf(field: JsonObject, definitions: JsonObject): Pick<FieldShape, "control" | "choices"> {
  const options = ((field.anyOf as JsonObject[] | undefined) ?? [field])
    .map((one) => resolved(one, definitions))
    .filter((one) => one.type !== "null");
  const first = options[0] ?? {};
  const choices = (first.enum as string[] | undefined) ?? (typeof first.const === "string" ? [first.const] : []);
  if (options.length === 1 && choices.length > 0) return { control: "choice", choices };
  if (options.some((one) => one.type === "string")) {
    const isLong = field["x-kind"] === "template" || first["x-kind"] === "template";
    return { control: isLong ? "long" : "text", choices: [] };
  }
  if (first.type === "number" || first.type === "integer") return { control: "number", choices: [] };
  if (first.type === "boolean") return { control: "boolean", choices: [] };
  if (first.type === "array" && objectOf(first.items).type === "string") return { control: "words", choices: [] };
  return { control: "json", choices: [] };
}

function resolved(shape: JsonObject, definitions: JsonObject): JsonObject {
  const options = (shape.anyOf as JsonObject[] | undefined)?.filter((one) => one.type !== "null");
  if (options?.length === 1 && options[0]) return resolved(options[0], definitions);
  const name = typeof shape.$ref === "string" ? shape.$ref.split("/").at(-1) : undefined;
  return name ? objectOf(definitions[name]) : shape;
}

function objectOf(value: Json | undefined): JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}

function at(value: JsonObject, ...path: string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const part of path) found = objectOf(found)[part];
  return found;
}

/** What the palette offers, in the order people need it. */
export const PALETTE = [
  "agent",
  "tool",
  "human",
  "decision",
  "parallel",
  "join",
  "loop",
  "transform",
  "memory",
  "workflow",
  "http",
  "code",
  "wait",
  "emit",
  "start",
  "end",
  "note",
] as const;

/** What a new node of a type says at first, so that it can be read and checked at once. */
export function firstConfig(type: string): JsonObject {
  switch (type) {
    case "agent":
      return { prompt: "…" };
    case "tool":
      return { tool: "calculator", parameters: { expression: "1 + 1" } };
    case "human":
      return { message: "…", actions: ["approve", "reject"] };
    case "decision":
      return { expression: "true" };
    case "parallel":
      return { items: "[1, 2, 3]" };
    case "loop":
      return { maxIterations: 3 };
    case "transform":
      return { set: {} };
    case "memory":
      return { scope: "session", operation: "get", key: "key" };
    case "workflow":
      return { workflow: "…" };
    case "http":
      return { method: "GET", url: "https://example.org/" };
    case "code":
      return { language: "python", source: "result = inputs" };
    case "wait":
      return { duration: "1m" };
    case "emit":
      return { event: "event" };
    case "note":
      return { text: "…" };
    default:
      return {};
  }
}
