/** Canvas edits as operations on the document. One user action is one list and one undo step. */

import type { Definition, DefinitionEdge, JsonObject } from "@/api/views";
import type { Point } from "@/graph/layout/geometry";
import { BOX, type Rect } from "@/graph/layout/geometry";
import { frameAround, type PlacedNote } from "@/graph/layout/notes";
import { edgeNames } from "@/graph/model/edgeNames";
import { conditionFor, type Outcome } from "@/graph/model/outcomes";
import type { Selection } from "../canvas/selection";
import { freshId, type Operation } from "./operations";
import { firstNode } from "./palette";

export type Positions = ReadonlyMap<string, Point>;

const STEP = { x: 76, y: 34 } as const;

const rounded = (point: Point) => ({ x: Math.round(point.x), y: Math.round(point.y) });

const setPosition = (node: string, to: Point): Operation => ({
  op: "change_node",
  node,
  set: { "/position": rounded(to) as unknown as JsonObject },
});

/** Once one box has a stored position, store the displayed positions of the others, so that they do not move. */
export function fixPositions(
  definition: Definition,
  places: Positions,
  but: ReadonlySet<string> = new Set(),
): Operation[] {
  return definition.nodes.flatMap((node) => {
    const at = places.get(node.id);
    return node.position || but.has(node.id) || !at ? [] : [setPosition(node.id, at)];
  });
}

export function moveNodes(definition: Definition, places: Positions, to: Positions): Operation[] {
  const gone = new Map(definition.nodes.map((node) => [node.id, places.get(node.id)]));
  const moves = [...to].filter(([id, at]) => {
    const was = gone.get(id);
    return gone.has(id) && (!was || Math.round(was.x) !== Math.round(at.x) || Math.round(was.y) !== Math.round(at.y));
  });
  if (moves.length === 0) return [];
  return [
    ...fixPositions(definition, places, new Set(moves.map(([id]) => id))),
    ...moves.map(([id, at]) => setPosition(id, at)),
  ];
}

/** Removing a node also removes its edges. */
export function removeElements(definition: Definition, { nodes, edges }: Selection): Operation[] {
  const gone = new Set(nodes);
  const names = edgeNames(definition.edges);
  const cut = new Set(edges);
  const goes = definition.edges.flatMap((edge, at) => {
    const name = names[at] as string;
    return cut.has(name) && !gone.has(edge.source) && !gone.has(edge.target) ? [name] : [];
  });
  return [
    // In reverse, because removing `a->b` would rename `a->b 2`.
    ...goes.reverse().map((edge): Operation => ({ op: "disconnect", edge })),
    ...nodes.map((node): Operation => ({ op: "remove_node", node })),
  ];
}

export interface NewNode {
  /** A choice of the palette. */
  type: string;
  /** Top left corner. */
  at?: Point | undefined;
  /** Predecessor of the new node. */
  after?: string | undefined;
  /** The edge into which the node is inserted. */
  on?: string | undefined;
  /** Id of the outcome at whose port the gesture began. */
  outcome?: string | undefined;
  /** The outcome that the new edge follows. */
  follows?: Outcome | undefined;
}

/** A new edge; its condition is that of the outcome which it follows. */
export function connectNodes(definition: Definition, source: string, target: string, outcome?: Outcome): Operation {
  const from = definition.nodes.find((node) => node.id === source);
  const condition = from && outcome ? conditionFor(outcome, from) : undefined;
  return { op: "connect", edge: { source, target, ...(condition ? { condition } : {}) } };
}

/** Add a node and connect it as requested. */
export function addNode(
  definition: Definition,
  places: Positions,
  adding: NewNode,
): { id: string; changes: Operation[] } {
  const { after, on, follows } = adding;
  const { idStem, ...first } = firstNode(adding.type);
  const id = freshId(definition, idStem);
  const at = adding.at ?? placeFor(definition, places, adding);
  const isPlaced = definition.nodes.length > 0 && definition.nodes.every((node) => node.position);
  const node = {
    id,
    ...first,
    ...(at && (adding.at || isPlaced) ? { position: rounded(at) } : {}),
  };
  const changes: Operation[] = adding.at ? fixPositions(definition, places) : [];
  changes.push({ op: "add_node", node });
  if (on !== undefined && node.type !== "note")
    changes.push(...insertOnEdge({ ...definition, nodes: [...definition.nodes, node] }, on, id, follows));
  else if (after !== undefined && node.type !== "note" && node.type !== "start")
    changes.push(connectNodes(definition, after, id, follows));
  return { id, changes };
}

/**
 * Insert a node into an edge. The edge keeps its condition and leads to the node; a new edge leads on to the old
 * target.
 */
export function insertOnEdge(definition: Definition, edge: string, node: string, follows?: Outcome): Operation[] {
  const found = definition.edges[edgeNames(definition.edges).indexOf(edge)];
  if (!found || found.source === node || found.target === node) return [];
  return [{ op: "change_edge", edge, set: { "/target": node } }, connectNodes(definition, node, found.target, follows)];
}

function placeFor(definition: Definition, places: Positions, { after, on }: NewNode): Point | undefined {
  const edge = on === undefined ? undefined : definition.edges[edgeNames(definition.edges).indexOf(on)];
  const from = places.get(edge?.source ?? after ?? "");
  const to = edge ? places.get(edge.target) : undefined;
  if (from && to) return { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 + STEP.y };
  const near = from ? { x: from.x + BOX.width + STEP.x, y: from.y } : undefined;
  return near ? freePosition(near, places) : undefined;
}

/** A frame around nodes and notes; `sizes`: of the notes. */
export function addFrame(
  definition: Definition,
  places: Positions,
  ids: readonly string[],
  sizes: ReadonlyMap<string, { width: number; height: number }>,
): { id: string; changes: Operation[] } | null {
  const rects = ids.flatMap((id) => {
    const at = places.get(id);
    return at ? [{ x: at.x, y: at.y, ...(sizes.get(id) ?? BOX) }] : [];
  });
  const rect = frameAround(rects);
  if (!rect) return null;
  const { id, changes } = addNode(definition, places, { type: "frame", at: rect });
  return { id, changes: [...changes, resizeNote(id, rect)] };
}

export function resizeNote(id: string, to: Rect): Operation {
  const size = { "/config/width": Math.round(to.width), "/config/height": Math.round(to.height) };
  return { op: "change_node", node: id, set: { "/position": rounded(to) as unknown as JsonObject, ...size } };
}

/** Store the rectangles of notes and frames after a new layout. */
export function moveNotes(
  definition: Definition,
  before: readonly PlacedNote[],
  after: ReadonlyMap<string, Rect>,
): Operation[] {
  const known = new Set(definition.nodes.map((node) => node.id));
  return before.flatMap(({ note, ...was }) => {
    const to = after.get(note.id);
    if (!to || !known.has(note.id)) return [];
    const isSame = (["x", "y", "width", "height"] as const).every(
      (one) => Math.round(was[one]) === Math.round(to[one]),
    );
    if (isSame) return [];
    const isSameSize = was.width === to.width && was.height === to.height;
    return [isSameSize ? setPosition(note.id, to) : resizeNote(note.id, to)];
  });
}

/** The node that leads to a new one: the selected one, otherwise the open end. Notes lead nowhere. */
export function predecessorOf(definition: Definition, selected: string | undefined): string | undefined {
  const node = definition.nodes.find((one) => one.id === selected);
  return node && node.type !== "note" ? node.id : openEnd(definition);
}

/** The only node without an outgoing edge, if there is exactly one: the next node is added behind it. */
export function openEnd({ nodes, edges }: Definition): string | undefined {
  const leading = new Set(edges.map((edge) => edge.source));
  const open = nodes.filter((node) => node.type !== "end" && node.type !== "note" && !leading.has(node.id));
  return open.length === 1 ? open[0]?.id : undefined;
}

/** The next free position below. */
export function freePosition(wish: Point, places: Positions): Point {
  const taken = [...places.values()];
  let y = wish.y;
  const covers = (one: Point) => Math.abs(one.x - wish.x) < BOX.width && Math.abs(one.y - y) < BOX.height;
  for (let found = taken.find(covers); found; found = taken.find(covers)) y = found.y + BOX.height + STEP.y;
  return { x: wish.x, y };
}

/** Change the ends of an edge; its other fields stay. */
export function reconnectEdge(
  definition: Definition,
  edge: string,
  ends: { source: string; target: string },
  outcome?: Outcome,
): Operation[] {
  const found = definition.edges[edgeNames(definition.edges).indexOf(edge)];
  if (!found) return [];
  const set: JsonObject = {};
  const source = definition.nodes.find((node) => node.id === ends.source);
  const condition = source && outcome ? conditionFor(outcome, source) : undefined;
  if (condition && JSON.stringify(condition) !== JSON.stringify(found.condition)) set["/condition"] = condition;
  if (found.source !== ends.source) set["/source"] = ends.source;
  if (found.target !== ends.target) set["/target"] = ends.target;
  return Object.keys(set).length > 0 ? [{ op: "change_edge", edge, set }] : [];
}

export function edgeNamed(definition: Definition, name: string): DefinitionEdge | undefined {
  return definition.edges[edgeNames(definition.edges).indexOf(name)];
}
