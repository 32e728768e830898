/** A node under another id, on the screen. The server renames in the author's document when it is saved, and exactly. */
import type { Definition, DefinitionGraph, Json } from "@/api/views";

/** Lists and fields of a definition that name nodes. */
const NAMING = new Set([
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

export function renamed(definition: Definition, from: string, to: string): Definition {
  const { graph, ...document } = definition;
  const nodes = document.nodes.map((node) => ({ ...node, id: node.id === from ? to : node.id }));
  const made = inside({ ...document, nodes } as unknown as Json, "", from, to) as unknown as Definition;
  return graph ? { ...made, graph: renamedIn(graph, from, to) } : made;
}

function renamedIn(graph: DefinitionGraph, from: string, to: string): DefinitionGraph {
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

function inside(value: Json, key: string, from: string, to: string): Json {
  if (typeof value === "string") return NAMING.has(key) && value === from ? to : inText(value, from, to);
  if (Array.isArray(value)) return value.map((one) => inside(one, key, from, to));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inside(one, name, from, to)]));
}

/** Where an expression, path or template reads the node's result: `nodes.id`, `nodes["id"]`. */
export function inText(text: string, from: string, to: string): string {
  const name = from.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const read = new RegExp(`\\b(nodes|nodeOutputs|outputs)(?:\\.${name}(?![\\w-])|\\[(["'])${name}\\2\\])`, "g");
  const key = /^[A-Za-z_]\w*$/.test(to) ? `.${to}` : `["${to}"]`;
  return text.replaceAll(read, (_, root: string) => root + key);
}
