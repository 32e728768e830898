/**
 * Names that formulas at one place of a workflow can read: for completion, and for the server's check of one formula.
 */
import type { Definition, DefinitionNode, Json, JsonObject } from "@/api/views";
import { textIn } from "@/i18n";
import { resultNameOf } from "./resultNames";
import { objectOf } from "./shapes";

export interface Name {
  name: string;
  /** JSON type, if known. */
  type: string;
  /** The node that writes the name, or its description. */
  about: string;
  /** Display name, if it differs from the name. */
  label?: string;
  members: Name[];
}

export interface FormulaScope {
  /** Completions for bare names in order of usefulness: fields, then roots. */
  names: Name[];
  /** `as` names and inputs of the node; they shadow fields. */
  localNames: string[];
  schemas: Record<string, JsonObject>;
  dialect: string;
}

/** Node types whose fields have names that only the server knows completely. */
const OWN_NAMES = new Set(["join", "wait", "template", "planner"]);
const WRITTEN_BY_OPERATIONS = ["to", "into", "set", "increment"];
const WRITTEN_BY_CONFIG = ["collect", "countInto", "failuresInto", "records"];

export function scopeAt(definition: Definition, node?: DefinitionNode, language = "en"): FormulaScope {
  const fields = fieldsOf(definition);
  const own = [...itemNames(definition), ...Object.keys(objectOf(node?.inputs as Json | undefined))];
  const input = objectOf(definition.input as Json | undefined);
  const isClosed =
    Boolean(input.properties) && !input.additionalProperties && !definition.dialect && !OWN_NAMES.has(node?.type ?? "");
  const properties: JsonObject = {};
  for (const [name, field] of fields) properties[name] = field.schema;
  const state: JsonObject = { type: "object", properties, ...(isClosed ? { additionalProperties: false } : {}) };
  return {
    names: [
      ...own.map((name) => nameEntry(name)),
      ...[...fields].map(([name, field]) => schemaEntry(name, field.schema, field.by)),
      ...rootsOf(definition, input, fields, language),
    ],
    localNames: own,
    schemas: { state, ...(input.properties ? { input } : {}) },
    dialect: typeof definition.dialect === "string" ? definition.dialect : "native",
  };
}

interface Field {
  schema: JsonObject;
  by: string;
}

/** Fields of the state: from the input, declared, or written by a node. */
function fieldsOf(definition: Definition): Map<string, Field> {
  const found = new Map<string, Field>();
  const note = (path: string, by: string, schema: JsonObject = {}) => {
    const name = /^[\p{L}_][\p{L}\p{N}_]*/u.exec(path.replace(/^\$?\.?(?:state\.)?/, ""))?.[0];
    if (!name) return;
    const known = found.get(name);
    if (!known || Object.keys(known.schema).length === 0) found.set(name, { schema, by: known?.by ?? by });
  };
  for (const [name, schema] of Object.entries(objectOf(objectOf(definition.input as Json).properties)))
    note(name, "input", objectOf(schema));
  for (const [name, about] of Object.entries(objectOf(definition.state as Json))) {
    note(name, "state", name.includes(".") ? {} : objectOf(objectOf(about).schema));
  }
  for (const name of Object.keys(objectOf(objectOf(definition.config as Json).settings))) note(name, "config");
  for (const node of definition.nodes) {
    // The output schema of an agent gives the members of its result before it runs.
    const resultField = resultNameOf(node);
    if (resultField) note(resultField, node.id, objectOf(objectOf(node.config).outputSchema));
    for (const path of writtenBy(node)) note(path, node.id);
  }
  if (objectOf(definition.config as Json).conversational === true) note("messages", "session", { type: "array" });
  return found;
}

function writtenBy(node: DefinitionNode): string[] {
  const config = objectOf(node.config);
  const operations = Array.isArray(config.operations) ? config.operations : [];
  return [
    ...Object.keys(objectOf(node.outputs as Json | undefined)),
    ...Object.keys(objectOf(config.set)),
    ...Object.keys(objectOf(config.defaults)),
    ...operations.flatMap((one) => WRITTEN_BY_OPERATIONS.map((key) => objectOf(one)[key])).filter(isText),
    ...WRITTEN_BY_CONFIG.map((key) => config[key]).filter(isText),
    ...(node.type === "human" ? [`humanResponse_${node.id.replaceAll("-", "_")}`] : []),
  ];
}

function isText(value: Json | undefined): value is string {
  return typeof value === "string";
}

function itemNames(definition: Definition): string[] {
  return definition.nodes.map((node) => objectOf(node.config).as).filter(isText);
}

function rootsOf(definition: Definition, input: JsonObject, fields: Map<string, Field>, language: string): Name[] {
  const nodes = definition.nodes
    .filter((node) => node.type !== "note")
    .map((node) => ({
      ...nameEntry(node.id, "", node.type, [
        nameEntry("text"),
        nameEntry("branch"),
        nameEntry("action"),
        nameEntry("round"),
      ]),
      label: textIn(node.name, language),
    }));
  const repeats = definition.nodes.some((node) => node.type === "parallel" || node.type === "loop");
  return [
    nameEntry("result", "", "result"),
    { ...schemaEntry("input", input, "root"), about: "input" },
    nameEntry("nodes", "object", "nodes", nodes),
    ...(repeats ? ["item", "index", "key"].map((name) => nameEntry(name, "", "item")) : []),
    ...(repeats
      ? [nameEntry("loop", "object", "loop", [nameEntry("iteration", "number"), nameEntry("previous")])]
      : []),
    nameEntry(
      "state",
      "object",
      "stateRoot",
      [...fields].map(([name, field]) => schemaEntry(name, field.schema, field.by)),
    ),
    nameEntry("config", "object", "config"),
    nameEntry(
      "execution",
      "object",
      "execution",
      ["id", "workflow", "version", "attempt", "startedAt"].map((n) => nameEntry(n)),
    ),
    nameEntry("session", "object", "session"),
  ];
}

function schemaEntry(name: string, schema: JsonObject, by: string): Name {
  const type = Array.isArray(schema.type)
    ? schema.type.join(" | ")
    : typeof schema.type === "string"
      ? schema.type
      : "";
  const about = typeof schema.description === "string" ? schema.description : by;
  const inside = Object.entries(objectOf(schema.properties)).map(([key, one]) => schemaEntry(key, objectOf(one), ""));
  return { name, type, about, members: inside };
}

function nameEntry(name: string, type = "", about = "", inside: Name[] = []): Name {
  return { name, type, about, members: inside };
}
