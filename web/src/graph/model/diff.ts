/** Differences between two definitions: added, removed and changed nodes, edges and workflow fields. */
import type { Definition, DefinitionEdge, Json, JsonObject } from "@/api/views";
import { edgeNames } from "./edgeNames";

export type Mark = "added" | "removed" | "changed";

/**
 * A changed value and its path (names joined by dots). `before` or `after` is absent if the value did not or does not
 * exist.
 */
export interface FieldChange {
  path: string;
  before?: Json;
  after?: Json;
}

export interface Change {
  kind: "node" | "edge" | "workflow";
  id: string;
  mark: Mark;
  fields: FieldChange[];
}

/** Keys that do not affect what a workflow does: node positions, and the graph that the server adds. */
const IGNORED_KEYS: ReadonlySet<string> = new Set(["position", "graph"]);

export function changesBetween(before: Definition, after: Definition): Change[] {
  const { nodes: oldNodes, edges: oldEdges, ...oldHead } = before;
  const { nodes: newNodes, edges: newEdges, ...newHead } = after;
  const head = fieldChanges(oldHead as JsonObject, newHead as JsonObject);
  return [
    ...(head.length > 0 ? [{ kind: "workflow", id: after.id, mark: "changed", fields: head } as const] : []),
    ...changesOf("node", byId(oldNodes), byId(newNodes)),
    ...changesOf("edge", byName(oldEdges), byName(newEdges)),
  ];
}

function byId(nodes: Definition["nodes"]): Map<string, JsonObject> {
  return new Map(nodes.map((node) => [node.id, node as unknown as JsonObject]));
}

function byName(edges: readonly DefinitionEdge[]): Map<string, JsonObject> {
  const names = edgeNames(edges);
  return new Map(edges.map((edge, at) => [names[at] as string, edge as unknown as JsonObject]));
}

function* changesOf(kind: "node" | "edge", before: Map<string, JsonObject>, after: Map<string, JsonObject>) {
  for (const [id, thing] of before) {
    const now = after.get(id);
    const fields = fieldChanges(thing, now ?? {});
    if (!now) yield { kind, id, mark: "removed", fields } satisfies Change;
    else if (fields.length > 0) yield { kind, id, mark: "changed", fields } satisfies Change;
  }
  for (const [id, thing] of after)
    if (!before.has(id)) yield { kind, id, mark: "added", fields: fieldChanges({}, thing) } satisfies Change;
}

/** Compare objects member by member and all other values as a whole. */
export function fieldChanges(before: JsonObject, after: JsonObject, around = ""): FieldChange[] {
  const found: FieldChange[] = [];
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!around && IGNORED_KEYS.has(name)) continue;
    const place = around ? `${around}.${name}` : name;
    const [was, is] = [before[name], after[name]];
    if (isObject(was) && isObject(is)) found.push(...fieldChanges(was, is, place));
    else if (!isSameJson(was, is))
      found.push({
        path: place,
        ...(was === undefined ? {} : { before: was }),
        ...(is === undefined ? {} : { after: is }),
      });
  }
  return found;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Compare as JSON; the order of keys does not matter. */
export function isSameJson(one: Json | undefined, other: Json | undefined): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((value, at) => isSameJson(value, other[at]));
  if (isObject(one) && isObject(other))
    return (
      Object.keys(one).length === Object.keys(other).length &&
      Object.keys(one).every((name) => name in other && isSameJson(one[name], other[name]))
    );
  return one === other;
}

/** One definition that contains all nodes and edges of `after` and those that only `before` has. */
export function mergedDefinition(before: Definition, after: Definition): Definition {
  const known = new Set(after.nodes.map((node) => node.id));
  const kept = new Set(edgeNames(after.edges));
  const names = edgeNames(before.edges);
  return {
    ...after,
    nodes: [...after.nodes, ...before.nodes.filter((node) => !known.has(node.id))],
    edges: [...after.edges, ...before.edges.filter((_, at) => !kept.has(names[at] as string))],
  };
}
