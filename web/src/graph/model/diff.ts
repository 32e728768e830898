/** What two definitions differ in, as a picture and a list tell it: what came, what went, what says something else. */
import type { Definition, DefinitionEdge, Json, JsonObject } from "@/api/views";
import { edgeNames } from "./edgeNames";

export type Mark = "added" | "removed" | "changed";

/** A value at a place (names joined by dots); absent where there was, or is, none. */
export interface FieldChange {
  place: string;
  before?: Json;
  after?: Json;
}

export interface Change {
  kind: "node" | "edge" | "workflow";
  id: string;
  mark: Mark;
  fields: FieldChange[];
}

/** Positions and the graph that the server sends are not what a workflow does. */
const LOOKS: ReadonlySet<string> = new Set(["position", "graph"]);

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

/** Objects are compared member by member, everything else as a whole. */
export function fieldChanges(before: JsonObject, after: JsonObject, around = ""): FieldChange[] {
  const found: FieldChange[] = [];
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!around && LOOKS.has(name)) continue;
    const place = around ? `${around}.${name}` : name;
    const [was, is] = [before[name], after[name]];
    if (isObject(was) && isObject(is)) found.push(...fieldChanges(was, is, place));
    else if (!same(was, is))
      found.push({
        place,
        ...(was === undefined ? {} : { before: was }),
        ...(is === undefined ? {} : { after: is }),
      });
  }
  return found;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** As JSON, whatever the order of the keys. */
export function same(one: Json | undefined, other: Json | undefined): boolean {
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((value, at) => same(value, other[at]));
  if (isObject(one) && isObject(other))
    return (
      Object.keys(one).length === Object.keys(other).length &&
      Object.keys(one).every((name) => name in other && same(one[name], other[name]))
    );
  return one === other;
}

/** Both in one: as it is after, and what went where it was. */
export function merged(before: Definition, after: Definition): Definition {
  const known = new Set(after.nodes.map((node) => node.id));
  const kept = new Set(edgeNames(after.edges));
  const names = edgeNames(before.edges);
  return {
    ...after,
    nodes: [...after.nodes, ...before.nodes.filter((node) => !known.has(node.id))],
    edges: [...after.edges, ...before.edges.filter((_, at) => !kept.has(names[at] as string))],
  };
}
