/**
 * Edit operations of the server, applied to the definition on the screen.
 * The server applies the same list to the author's document when it is saved, and reports the result of a dry run
 * before.
 */

import type { Definition, DefinitionEdge, DefinitionNode, Json, JsonObject } from "@/api/views";
import { edgeNames } from "@/graph/model/edgeNames";
import { renameNode } from "./rename";

export type Operation =
  | { op: "add_node"; node: DefinitionNode }
  | { op: "remove_node"; node: string }
  | { op: "change_node"; node: string; set?: JsonObject; remove?: string[] }
  | { op: "connect"; edge: DefinitionEdge }
  | { op: "disconnect"; edge: string }
  | { op: "change_edge"; edge: string; set?: JsonObject; remove?: string[] }
  | { op: "change_workflow"; set?: JsonObject; remove?: string[] }
  | { op: "rename_node"; node: string; to: string }
  | { op: "order_nodes"; nodes: string[] }
  | { op: "order_edges"; edges: string[] }
  | ReplaceText;

const KINDS: Readonly<Record<Operation["op"], true>> = {
  add_node: true,
  remove_node: true,
  change_node: true,
  connect: true,
  disconnect: true,
  change_edge: true,
  change_workflow: true,
  rename_node: true,
  order_nodes: true,
  order_edges: true,
  replace_text: true,
};

/** Stored changes may come from another version of the app. */
export function isOperation(stored: { op: string }): stored is Operation {
  return Object.hasOwn(KINDS, stored.op);
}

/**
 * The author typed a new text. `reads` is the definition that the server parsed from it; later operations apply to
 * that.
 */
export interface ReplaceText {
  op: "replace_text";
  text: string;
  reads: Definition;
}

/** Body of the edit request: operations on the saved document, or on the text that was typed last. */
export function editRequest(done: readonly (readonly Operation[])[]): { operations: Operation[]; text?: string } {
  const all = done.flat();
  const at = all.findLastIndex((one) => one.op === "replace_text");
  const typed = all[at];
  if (typed?.op !== "replace_text") return { operations: all };
  return { operations: all.slice(at + 1), text: typed.text };
}

/** Apply one operation. Untouched parts keep their objects. */
export function applyOperation(definition: Definition, change: Operation): Definition {
  switch (change.op) {
    case "add_node":
      return { ...definition, nodes: [...definition.nodes, change.node] };
    case "remove_node":
      return {
        ...definition,
        nodes: definition.nodes.filter((node) => node.id !== change.node),
        edges: definition.edges.filter((edge) => edge.source !== change.node && edge.target !== change.node),
      };
    case "change_node":
      return {
        ...definition,
        nodes: definition.nodes.map((node) => (node.id === change.node ? changed(node, change) : node)),
      };
    case "connect":
      return { ...definition, edges: [...definition.edges, change.edge] };
    case "disconnect": {
      const names = edgeNames(definition.edges);
      return { ...definition, edges: definition.edges.filter((_, at) => names[at] !== change.edge) };
    }
    case "change_edge": {
      const names = edgeNames(definition.edges);
      return {
        ...definition,
        edges: definition.edges.map((edge, at) => (names[at] === change.edge ? changed(edge, change) : edge)),
      };
    }
    case "change_workflow":
      return changed(definition, change);
    case "rename_node":
      return renameNode(definition, change.node, change.to);
    case "order_nodes":
      return { ...definition, nodes: reordered(definition.nodes, (node) => node.id, change.nodes) };
    case "order_edges": {
      const names = edgeNames(definition.edges);
      return { ...definition, edges: reordered(definition.edges, (_, at) => names[at] as string, change.edges) };
    }
    case "replace_text":
      return change.reads;
  }
}

/**
 * Apply the operations that have an effect and return them with the new definition. The server rejects the removal of a
 * missing value, so such operations are dropped.
 */
export function applyEffective(
  definition: Definition,
  changes: readonly Operation[],
): { made: Operation[]; shown: Definition } {
  const made: Operation[] = [];
  let shown = definition;
  for (const change of changes) {
    const one = "remove" in change ? withoutNoOps(shown, change) : change;
    if (!one) continue;
    made.push(one);
    shown = applyOperation(shown, one);
  }
  return { made, shown };
}

type Change = Operation & { op: "change_node" | "change_edge" | "change_workflow" };

function withoutNoOps(definition: Definition, change: Change): Operation | null {
  const { remove = [], ...rest } = change;
  const thing = targetOf(definition, change);
  const there = remove.filter((pointer) => hasValue(thing, parts(pointer)));
  if (there.length > 0) return { ...rest, remove: there };
  return rest.set ? rest : null;
}

function targetOf(definition: Definition, change: Change): object | undefined {
  if (change.op === "change_workflow") return definition;
  if (change.op === "change_node") return definition.nodes.find((node) => node.id === change.node);
  return definition.edges[edgeNames(definition.edges).indexOf(change.edge)];
}

function hasValue(thing: object | undefined, path: readonly string[]): boolean {
  let found: unknown = thing;
  for (const part of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, part)) return false;
    found = (found as { [name: string]: unknown })[part];
  }
  return true;
}

/** The named elements first, in the given order; the others follow in their old order. */
function reordered<T extends object>(
  things: readonly T[],
  nameOf: (thing: T, at: number) => string,
  names: readonly string[],
): T[] {
  const byName = new Map(things.map((thing, at) => [nameOf(thing, at), thing]));
  const first = names.flatMap((name) => byName.get(name) ?? []);
  return [...first, ...things.filter((thing) => !first.includes(thing))];
}

function changed<T extends object>(thing: T, change: { set?: JsonObject; remove?: string[] }): T {
  let found: Json = thing as unknown as Json;
  for (const pointer of change.remove ?? []) found = put(found, parts(pointer), undefined);
  for (const [pointer, value] of Object.entries(change.set ?? {})) found = put(found, parts(pointer), value);
  return found as unknown as T;
}

function parts(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function put(thing: Json, path: readonly string[], value: Json | undefined): Json {
  const [first, ...rest] = path;
  if (first === undefined) return value ?? null;
  const inner = Array.isArray(thing) ? [...thing] : { ...((thing ?? {}) as JsonObject) };
  if (Array.isArray(inner)) {
    const at = first === "-" ? inner.length : Number(first);
    if (rest.length > 0) inner[at] = put(inner[at] ?? null, rest, value);
    else if (value === undefined) inner.splice(at, 1);
    else inner[at] = value;
    return inner;
  }
  if (rest.length > 0) inner[first] = put(inner[first] ?? {}, rest, value);
  else if (value === undefined) delete inner[first];
  else inner[first] = value;
  return inner;
}

/** Id for a new node: its type, with a number if that is in use. */
export function freshId(definition: Definition, type: string): string {
  const taken = new Set(definition.nodes.map((node) => node.id));
  if (!taken.has(type)) return type;
  let nth = 2;
  while (taken.has(`${type}_${nth}`)) nth += 1;
  return `${type}_${nth}`;
}
