/** A node under another id, on the screen. The server renames in the author's document when it is saved, and exactly. */
import type { Definition, Json } from "@/api/views";

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
  const nodes = definition.nodes.map((node) => ({ ...node, id: node.id === from ? to : node.id }));
  return inside({ ...definition, nodes } as unknown as Json, "", from, to) as unknown as Definition;
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
