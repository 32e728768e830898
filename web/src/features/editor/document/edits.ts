/** What is done on a canvas, as changes of the document. Whatever one person does at once is one list, and one undo. */

import type { Definition, DefinitionEdge, JsonObject } from "@/api/views";
import type { Point } from "@/graph/layout/geometry";
import { BOX } from "@/graph/layout/geometry";
import { edgeNames } from "@/graph/model/edgeNames";
import type { Selection } from "../canvas/selection";
import { freshId, type Operation } from "./operations";
import { firstConfig } from "./palette";

export type Places = ReadonlyMap<string, Point>;

const STEP = { x: 76, y: 34 } as const;

const rounded = (point: Point) => ({ x: Math.round(point.x), y: Math.round(point.y) });

const put = (node: string, to: Point): Operation => ({
  op: "change_node",
  node,
  set: { "/position": rounded(to) as unknown as JsonObject },
});

/** Boxes that nobody had placed stay where they are seen, once one of them has a place. */
export function pinned(definition: Definition, places: Places, but: ReadonlySet<string> = new Set()): Operation[] {
  return definition.nodes.flatMap((node) => {
    const at = places.get(node.id);
    return node.position || but.has(node.id) || !at ? [] : [put(node.id, at)];
  });
}

export function moved(definition: Definition, places: Places, to: Places): Operation[] {
  const gone = new Map(definition.nodes.map((node) => [node.id, places.get(node.id)]));
  const moves = [...to].filter(([id, at]) => {
    const was = gone.get(id);
    return gone.has(id) && (!was || Math.round(was.x) !== Math.round(at.x) || Math.round(was.y) !== Math.round(at.y));
  });
  if (moves.length === 0) return [];
  return [...pinned(definition, places, new Set(moves.map(([id]) => id))), ...moves.map(([id, at]) => put(id, at))];
}

/** Edges of a node go with it. */
export function removed(definition: Definition, { nodes, edges }: Selection): Operation[] {
  const gone = new Set(nodes);
  const names = edgeNames(definition.edges);
  const cut = new Set(edges);
  const goes = definition.edges.flatMap((edge, at) => {
    const name = names[at] as string;
    return cut.has(name) && !gone.has(edge.source) && !gone.has(edge.target) ? [name] : [];
  });
  return [
    // From behind: with `a->b` gone, `a->b 2` would be called so.
    ...goes.reverse().map((edge): Operation => ({ op: "disconnect", edge })),
    ...nodes.map((node): Operation => ({ op: "remove_node", node })),
  ];
}

export interface Adding {
  type: string;
  /** Where its upper left corner comes. */
  at?: Point | undefined;
  /** The node that leads to it. */
  after?: string | undefined;
  /** The edge it is put on. */
  on?: string | undefined;
}

/** A new node, connected where that was asked for. */
export function added(definition: Definition, places: Places, adding: Adding): { id: string; changes: Operation[] } {
  const { type, after, on } = adding;
  const id = freshId(definition, type);
  const at = adding.at ?? placeFor(definition, places, adding);
  const isPlaced = definition.nodes.length > 0 && definition.nodes.every((node) => node.position);
  const node = {
    id,
    type,
    config: firstConfig(type),
    ...(at && (adding.at || isPlaced) ? { position: rounded(at) } : {}),
  };
  const changes: Operation[] = adding.at ? pinned(definition, places) : [];
  changes.push({ op: "add_node", node });
  if (on !== undefined) changes.push(...spliced(definition, on, id));
  else if (after !== undefined && type !== "note" && type !== "start")
    changes.push({ op: "connect", edge: { source: after, target: id } });
  return { id, changes };
}

/** The edge leads to the node, and the node to where the edge led. What the edge asked is asked as before. */
export function spliced(definition: Definition, edge: string, node: string): Operation[] {
  const found = definition.edges[edgeNames(definition.edges).indexOf(edge)];
  if (!found || found.source === node || found.target === node) return [];
  return [
    { op: "change_edge", edge, set: { "/target": node } },
    { op: "connect", edge: { source: node, target: found.target } },
  ];
}

function placeFor(definition: Definition, places: Places, { after, on }: Adding): Point | undefined {
  const edge = on === undefined ? undefined : definition.edges[edgeNames(definition.edges).indexOf(on)];
  const from = places.get(edge?.source ?? after ?? "");
  const to = edge ? places.get(edge.target) : undefined;
  if (from && to) return { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 + STEP.y };
  const near = from ? { x: from.x + BOX.width + STEP.x, y: from.y } : undefined;
  return near ? free(near, places) : undefined;
}

/** The one node that leads nowhere yet, where there is just one: behind it comes what is added next. */
export function openEnd({ nodes, edges }: Definition): string | undefined {
  const leading = new Set(edges.map((edge) => edge.source));
  const open = nodes.filter((node) => node.type !== "end" && node.type !== "note" && !leading.has(node.id));
  return open.length === 1 ? open[0]?.id : undefined;
}

/** The next place below that nothing stands on. */
export function free(wish: Point, places: Places): Point {
  const taken = [...places.values()];
  let y = wish.y;
  const covers = (one: Point) => Math.abs(one.x - wish.x) < BOX.width && Math.abs(one.y - y) < BOX.height;
  for (let found = taken.find(covers); found; found = taken.find(covers)) y = found.y + BOX.height + STEP.y;
  return { x: wish.x, y };
}

/** Another end for an edge; all that it says stays. */
export function turnedTo(definition: Definition, edge: string, ends: { source: string; target: string }): Operation[] {
  const found = definition.edges[edgeNames(definition.edges).indexOf(edge)];
  if (!found) return [];
  const set: Record<string, string> = {};
  if (found.source !== ends.source) set["/source"] = ends.source;
  if (found.target !== ends.target) set["/target"] = ends.target;
  return Object.keys(set).length > 0 ? [{ op: "change_edge", edge, set }] : [];
}

export function edgeCalled(definition: Definition, name: string): DefinitionEdge | undefined {
  return definition.edges[edgeNames(definition.edges).indexOf(name)];
}
