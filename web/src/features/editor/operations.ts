/** Changes of a definition as the server knows them, and what they do to the copy that is on the screen.

    The server applies the same list to the author's document when it is saved, and says what it would do before.
*/
import type { Definition, DefinitionEdge, DefinitionNode, Json, JsonObject } from "@/api/views";

export type Operation =
  | { op: "add_node"; node: DefinitionNode }
  | { op: "remove_node"; node: string }
  | { op: "change_node"; node: string; set?: JsonObject; remove?: string[] }
  | { op: "connect"; edge: DefinitionEdge }
  | { op: "disconnect"; edge: string }
  | { op: "change_edge"; edge: string; set?: JsonObject; remove?: string[] }
  | { op: "change_workflow"; set?: JsonObject; remove?: string[] };

/** The definition after one change. What the change does not touch is the same object as before. */
export function applied(definition: Definition, change: Operation): Definition {
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
  }
}

/** How edges are named: by their ids, else `source->target`, with a number from the second on. */
export function edgeNames(edges: readonly DefinitionEdge[]): string[] {
  const seen = new Map<string, number>();
  return edges.map((edge) => {
    if (edge.id) return edge.id;
    const name = `${edge.source}->${edge.target}`;
    const nth = (seen.get(name) ?? 0) + 1;
    seen.set(name, nth);
    return nth === 1 ? name : `${name} ${nth}`;
  });
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

/** An id for a new node: its type, with a number where that is taken. */
export function freshId(definition: Definition, type: string): string {
  const taken = new Set(definition.nodes.map((node) => node.id));
  if (!taken.has(type)) return type;
  let nth = 2;
  while (taken.has(`${type}_${nth}`)) nth += 1;
  return `${type}_${nth}`;
}
