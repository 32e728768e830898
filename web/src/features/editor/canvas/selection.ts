/** The selection: any number of nodes and edges. `Picked` is the only selected element. */
import type { Definition } from "@/api/views";
import { edgeNames } from "@/graph/model/edgeNames";

export interface Picked {
  kind: "node" | "edge";
  id: string;
}

export interface Selection {
  nodes: readonly string[];
  edges: readonly string[];
}

export const EMPTY_SELECTION: Selection = { nodes: [], edges: [] };

export function selectionOf(picked: Picked | null): Selection {
  if (!picked) return EMPTY_SELECTION;
  return picked.kind === "node" ? { nodes: [picked.id], edges: [] } : { nodes: [], edges: [picked.id] };
}

export function pickedOf({ nodes, edges }: Selection): Picked | null {
  const [node] = nodes;
  const [edge] = edges;
  if (nodes.length + edges.length !== 1) return null;
  return node === undefined ? { kind: "edge", id: edge as string } : { kind: "node", id: node };
}

/** Drop elements that no longer exist, for example after an undo. */
export function existingIn(selection: Selection, definition: Definition): Selection {
  const nodes = new Set(definition.nodes.map((node) => node.id));
  const edges = new Set(edgeNames(definition.edges));
  return {
    nodes: selection.nodes.filter((id) => nodes.has(id)),
    edges: selection.edges.filter((id) => edges.has(id)),
  };
}
