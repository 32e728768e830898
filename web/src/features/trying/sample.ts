/** Sample results for nodes that never ran; the user edits them. */
import type { Definition, DefinitionNode, Json, JsonObject } from "@/api/views";
import { answersOfferedBy } from "@/graph/model/answerNames";
import { isObject } from "@/values/changes";

const DEPTH_MAX = 12;

/** The answers or branches of a node, in the order of its outgoing edges. */
export function branchesOf(node: DefinitionNode, definition: Definition): string[] {
  if (node.type !== "human" && node.type !== "checkpoint" && node.type !== "decision" && node.type !== "conditional")
    return [];
  const arrows = definition.edges
    .filter((edge) => edge.source === node.id && edge.condition?.type === "label")
    .map((edge) => edge.condition?.label);
  const offered = answersOfferedBy(node).map((one) => (isObject(one) ? one.value : one));
  return [...new Set([...arrows, ...offered].filter((one) => typeof one === "string"))];
}

/** The answer or branch that a mocked result selects. */
export function chosenBranch(value: Json): string | null {
  const branch = isObject(value) ? (value.action ?? value.branch) : value;
  return typeof branch === "string" ? branch : null;
}

/** The same value with another branch. */
export function withBranch(node: DefinitionNode, way: string, value: Json | undefined): Json {
  if (isDecision(node)) return { branch: way };
  return { data: null, ...(isObject(value) ? value : {}), action: way, branch: way, response: way };
}

export function sampleFor(node: DefinitionNode, definition: Definition): Json {
  const [way] = branchesOf(node, definition);
  if (way !== undefined) {
    const form = node.config?.form;
    return withBranch(node, way, isObject(form) && !isDecision(node) ? { data: sampleOf(form) } : undefined);
  }
  if (isDecision(node)) return { branch: "true" };
  const schema = node.config?.outputSchema;
  if (isObject(schema)) return sampleOf(schema);
  return node.type === "agent" || node.type === "prompt" ? "" : {};
}

const isDecision = (node: DefinitionNode) => node.type === "decision" || node.type === "conditional";

/** The smallest value that matches a schema and has every field that the schema names. */
export function sampleOf(schema: Json | undefined, root: JsonObject = isObject(schema) ? schema : {}, depth = 0): Json {
  if (!isObject(schema) || depth > DEPTH_MAX) return null;
  for (const key of ["const", "default"]) if (schema[key] !== undefined) return schema[key] as Json;
  for (const key of ["examples", "enum", "oneOf", "anyOf"]) {
    const first = Array.isArray(schema[key]) ? schema[key][0] : undefined;
    if (first !== undefined) return key.endsWith("Of") ? sampleOf(first, root, depth + 1) : first;
  }
  if (typeof schema.$ref === "string") return sampleOf(referred(root, schema.$ref), root, depth + 1);
  switch (Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? (schema.properties ? "object" : null))) {
    case "object": {
      const fields = Object.entries(isObject(schema.properties) ? schema.properties : {});
      return Object.fromEntries(fields.map(([name, one]) => [name, sampleOf(one, root, depth + 1)]));
    }
    case "array":
      return Array.from({ length: Number(schema.minItems ?? 1) }, () => sampleOf(schema.items, root, depth + 1));
    case "string":
      return "";
    case "integer":
    case "number":
      return typeof schema.minimum === "number" ? schema.minimum : 0;
    case "boolean":
      return false;
    default:
      return null;
  }
}

function referred(root: JsonObject, ref: string): Json | undefined {
  let at: Json | undefined = root;
  for (const name of ref.replace(/^#\/?/, "").split("/").filter(Boolean)) at = isObject(at) ? at[name] : undefined;
  return at;
}
