/**
 * Copy and paste nodes and edges as text: within a workflow, between workflows, and between windows.
 * {"pointsman-clipboard": 1, "nodes": [...], "edges": [...]}
 * Clipboard content is untrusted: every part is validated, and anything else is rejected.
 */
import type { Definition, DefinitionEdge, DefinitionNode, Json, JsonObject } from "@/api/views";
import { fixPositions, type Positions } from "./edits";
import type { Operation } from "./operations";

const MARK = "pointsman-clipboard";
const NODES_MAX = 1000;
const TEXT_MAX = 4_000_000;
const NAME_MAX = 200;
const SHIFT = 40;
/** Fields that reference nodes by id; formulas reference them as `nodes.<id>`. */
const NODE_REFERENCE_FIELDS = new Set(["branches", "body", "of", "onTimeout", "compensate", "handoffs"]);

export interface Piece {
  nodes: DefinitionNode[];
  edges: DefinitionEdge[];
}

export type PasteRefusal = "foreign" | "damaged" | "tooLarge";

/** The given nodes with their positions, and the edges between them. */
export function pieceOf(definition: Definition, ids: readonly string[], places: Positions): Piece {
  const taken = new Set(ids);
  return {
    nodes: definition.nodes
      .filter((node) => taken.has(node.id))
      .map((node) => {
        const at = node.position ?? places.get(node.id);
        return at ? { ...node, position: { x: Math.round(at.x), y: Math.round(at.y) } } : node;
      }),
    edges: definition.edges.filter((edge) => taken.has(edge.source) && taken.has(edge.target)),
  };
}

export const pieceText = (piece: Piece): string => JSON.stringify({ [MARK]: 1, ...piece }, null, 1);

export function readPiece(text: string): Piece | PasteRefusal {
  if (text.length > TEXT_MAX) return "tooLarge";
  if (!text.includes(MARK)) return "foreign";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "damaged";
  }
  if (!isObject(value) || value[MARK] !== 1) return "foreign";
  const { nodes, edges } = value;
  if (!Array.isArray(nodes) || !Array.isArray(edges)) return "damaged";
  if (nodes.length > NODES_MAX || edges.length > 10 * NODES_MAX) return "tooLarge";
  const ids = new Set<string>();
  for (const node of nodes) {
    if (!isNode(node) || ids.has(node.id)) return "damaged";
    ids.add(node.id);
  }
  if (nodes.length === 0 || !edges.every((edge) => isEdge(edge) && ids.has(edge.source) && ids.has(edge.target)))
    return "damaged";
  return { nodes: nodes as DefinitionNode[], edges: edges as DefinitionEdge[] };
}

/** Operations that insert a piece. Ids in use are replaced, also in references within the piece. `at`: the centre. */
export function pasteOperations(
  definition: Definition,
  places: Positions,
  piece: Piece,
  at?: { x: number; y: number },
): { ids: string[]; changes: Operation[] } {
  const names = newNamesFor(definition, piece);
  const shift = shiftOf(definition, places, piece, at);
  const isPlaced = piece.nodes.every((node) => node.position);
  const changes: Operation[] = isPlaced ? fixPositions(definition, places) : [];
  const ids: string[] = [];
  for (const node of piece.nodes) {
    const { position, ...rest } = node;
    const id = names.get(node.id) ?? node.id;
    const copy = withNewNames(rest as unknown as Json, names, "") as unknown as DefinitionNode;
    const there = position ? { x: Math.round(position.x + shift.x), y: Math.round(position.y + shift.y) } : undefined;
    changes.push({ op: "add_node", node: { ...copy, id, ...(there ? { position: there } : {}) } });
    ids.push(id);
  }
  for (const edge of piece.edges) {
    // Edge ids must be unique, so the copy is identified by its ends.
    const { id: _, source, target, ...rest } = edge;
    const ends = { source: names.get(source) ?? source, target: names.get(target) ?? target };
    changes.push({ op: "connect", edge: { ...rest, ...ends } });
  }
  return { ids, changes };
}

function newNamesFor(definition: Definition, piece: Piece): Map<string, string> {
  const taken = new Set(definition.nodes.map((node) => node.id));
  const names = new Map<string, string>();
  for (const { id } of piece.nodes) {
    const stem = id.replace(/_\d+$/, "");
    let next = id;
    for (let nth = 2; taken.has(next); nth += 1) next = `${stem}_${nth}`;
    taken.add(next);
    if (next !== id) names.set(id, next);
  }
  return names;
}

function shiftOf(definition: Definition, places: Positions, piece: Piece, at?: { x: number; y: number }) {
  const positions = piece.nodes.flatMap((node) => (node.position ? [node.position] : []));
  if (positions.length === 0) return { x: 0, y: 0 };
  if (at) {
    const xs = positions.map((one) => one.x);
    const ys = positions.map((one) => one.y);
    return {
      x: at.x - (Math.min(...xs) + Math.max(...xs)) / 2,
      y: at.y - (Math.min(...ys) + Math.max(...ys)) / 2,
    };
  }
  const corners = new Set(
    definition.nodes.map((node) => {
      const place = node.position ?? places.get(node.id);
      return place ? `${Math.round(place.x)} ${Math.round(place.y)}` : "";
    }),
  );
  let by = 0;
  while (positions.some((one) => corners.has(`${Math.round(one.x) + by} ${Math.round(one.y) + by}`))) by += SHIFT;
  return { x: by, y: by };
}

/** Replace references to nodes of the piece by their new ids. */
function withNewNames(value: Json, names: ReadonlyMap<string, string>, field: string): Json {
  if (names.size === 0) return value;
  if (typeof value === "string") {
    if (NODE_REFERENCE_FIELDS.has(field)) return names.get(value) ?? value;
    return value.replace(/\b(nodes\.)([A-Za-z_]\w*)/g, (all, before, id) => {
      const next = names.get(id);
      return next === undefined ? all : before + next;
    });
  }
  if (Array.isArray(value)) return value.map((one) => withNewNames(one, names, field));
  if (value === null || typeof value !== "object") return value;
  const found: JsonObject = {};
  for (const [name, one] of Object.entries(value)) found[name] = withNewNames(one, names, name);
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const isName = (value: unknown): value is string =>
  typeof value === "string" && value.length > 0 && value.length <= NAME_MAX;

function isNode(value: unknown): value is DefinitionNode {
  if (!isObject(value) || !isName(value.id) || !isName(value.type)) return false;
  if (value.config !== undefined && !isObject(value.config)) return false;
  const at = value.position;
  return at === undefined || (isObject(at) && Number.isFinite(at.x) && Number.isFinite(at.y));
}

function isEdge(value: unknown): value is DefinitionEdge {
  return isObject(value) && isName(value.source) && isName(value.target);
}
