/**
 * Rename a node in the definition on the screen. The server's rename, which applies when the draft is saved, is exact.
 */
import type { Definition, DefinitionGraph, Json } from "@/api/views";

/** Lists and fields that reference nodes by id. */
const NODE_REFERENCE_FIELDS = new Set([
  "source",
  "target",
  "branches",
  "body",
  "of",
  "compensate",
  "entry",
  "onError",
  "onLimit",
  "handoffs",
]);

export function renameNode(definition: Definition, from: string, to: string): Definition {
  const { graph, ...document } = definition;
  const nodes = document.nodes.map((node) => ({ ...node, id: node.id === from ? to : node.id }));
  const made = renameInValue({ ...document, nodes } as unknown as Json, "", from, to) as unknown as Definition;
  return graph ? { ...made, graph: renameInGraph(graph, from, to) } : made;
}

function renameInGraph(graph: DefinitionGraph, from: string, to: string): DefinitionGraph {
  const name = (id: string) => (id === from ? to : id);
  return {
    regions: graph.regions.map((one) => ({
      ...one,
      id: name(one.id),
      members: one.members.map(name),
      parent: one.parent === null ? null : name(one.parent),
    })),
    implied: graph.implied.map(({ source, target }) => ({ source: name(source), target: name(target) })),
    known: (graph.known ?? []).map(name),
  };
}

function renameInValue(value: Json, key: string, from: string, to: string): Json {
  if (typeof value === "string")
    return NODE_REFERENCE_FIELDS.has(key) && value === from ? to : renameInText(value, from, to);
  if (Array.isArray(value)) return value.map((one) => renameInValue(one, key, from, to));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, renameInValue(one, name, from, to)]));
}

/** Rename references to the node's result in an expression, path or template: `nodes.id`, `nodes["id"]`. */
export function renameInText(text: string, from: string, to: string): string {
  const name = from.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const read = new RegExp(`\\b(nodes|nodeOutputs|outputs)(?:\\.${name}(?![\\w-])|\\[(["'])${name}\\2\\])`, "g");
  const key = /^[A-Za-z_]\w*$/.test(to) ? `.${to}` : `["${to}"]`;
  return text.replaceAll(read, (_, root: string) => root + key);
}
