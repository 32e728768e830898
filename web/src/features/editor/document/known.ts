/** What formulas at a place of a workflow can read: for completion, and for the server's check of a single formula. */
import type { Definition, DefinitionNode, Json, JsonObject } from "@/api/views";
import { textIn } from "@/i18n";
import { keptAs } from "./resultNames";
import { objectOf } from "./shapes";

export interface Name {
  name: string;
  /** As a type of JSON, where it is known. */
  type: string;
  /** Who writes it, or what it is. */
  about: string;
  /** What people call it, where that is not its name. */
  called?: string;
  inside: Name[];
}

export interface Known {
  /** What bare names mean, in the order people look for them: fields, then roots. */
  names: Name[];
  /** `as` names and inputs of the node: they win over fields. */
  own: string[];
  schemas: Record<string, JsonObject>;
  dialect: string;
}

/** Nodes whose fields have names of their own, which only the server knows all of. */
const OWN_NAMES = new Set(["join", "wait", "template", "planner"]);
const WRITTEN_BY_OPERATIONS = ["to", "into", "set", "increment"];
const WRITTEN_BY_CONFIG = ["collect", "countInto", "failuresInto", "records"];

export function knownAt(definition: Definition, node?: DefinitionNode, language = "en"): Known {
  const fields = fieldsOf(definition);
  const own = [...asNames(definition), ...Object.keys(objectOf(node?.inputs as Json | undefined))];
  const input = objectOf(definition.input as Json | undefined);
  const isClosed =
    Boolean(input.properties) && !input.additionalProperties && !definition.dialect && !OWN_NAMES.has(node?.type ?? "");
  const properties: JsonObject = {};
  for (const [name, field] of fields) properties[name] = field.schema;
  const state: JsonObject = { type: "object", properties, ...(isClosed ? { additionalProperties: false } : {}) };
  return {
    names: [
      ...own.map((name) => named(name)),
      ...[...fields].map(([name, field]) => ofSchema(name, field.schema, field.by)),
      ...rootsOf(definition, input, fields, language),
    ],
    own,
    schemas: { state, ...(input.properties ? { input } : {}) },
    dialect: typeof definition.dialect === "string" ? definition.dialect : "native",
  };
}

interface Field {
  schema: JsonObject;
  by: string;
}

/** Fields of the state: given at the start, declared, or written by a node. */
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
    // What an agent must answer is known before it does.
    const kept = keptAs(node);
    if (kept) note(kept, node.id, objectOf(objectOf(node.config).outputSchema));
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

function asNames(definition: Definition): string[] {
  return definition.nodes.map((node) => objectOf(node.config).as).filter(isText);
}

function rootsOf(definition: Definition, input: JsonObject, fields: Map<string, Field>, language: string): Name[] {
  const nodes = definition.nodes
    .filter((node) => node.type !== "note")
    .map((node) => ({
      ...named(node.id, "", node.type, [named("text"), named("branch"), named("action"), named("round")]),
      called: textIn(node.name, language),
    }));
  const repeats = definition.nodes.some((node) => node.type === "parallel" || node.type === "loop");
  return [
    named("result", "", "result"),
    { ...ofSchema("input", input, "root"), about: "input" },
    named("nodes", "object", "nodes", nodes),
    ...(repeats ? ["item", "index", "key"].map((name) => named(name, "", "item")) : []),
    ...(repeats ? [named("loop", "object", "loop", [named("iteration", "number"), named("previous")])] : []),
    named(
      "state",
      "object",
      "stateRoot",
      [...fields].map(([name, field]) => ofSchema(name, field.schema, field.by)),
    ),
    named("config", "object", "config"),
    named(
      "execution",
      "object",
      "execution",
      ["id", "workflow", "version", "attempt", "startedAt"].map((n) => named(n)),
    ),
    named("session", "object", "session"),
  ];
}

function ofSchema(name: string, schema: JsonObject, by: string): Name {
  const type = Array.isArray(schema.type)
    ? schema.type.join(" | ")
    : typeof schema.type === "string"
      ? schema.type
      : "";
  const about = typeof schema.description === "string" ? schema.description : by;
  const inside = Object.entries(objectOf(schema.properties)).map(([key, one]) => ofSchema(key, objectOf(one), ""));
  return { name, type, about, inside };
}

function named(name: string, type = "", about = "", inside: Name[] = []): Name {
  return { name, type, about, inside };
}
