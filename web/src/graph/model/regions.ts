/**
 * Regions of a workflow: the nodes between a parallel and its join, and the body of a loop.
 * The server computes them (`graph` beside a definition). A draft uses the regions of its last check, reduced to the
 * nodes that it has now. A node added since that check belongs to the innermost region of its neighbours until the next
 * check.
 */
import type { Definition, DefinitionEdge } from "@/api/views";

export interface Region {
  /** Id of the parallel or loop that opens the region. That node is not a member. */
  id: string;
  /** A layout also keeps the boxes of a frame together. */
  kind: "parallel" | "loop" | "frame";
  /** All nodes inside, including those of nested regions. */
  members: string[];
  /** Number of nodes inside; set when some of them are folded away. */
  count?: number;
  parent: string | null;
}

export function regionsOf({ nodes, edges, graph }: Definition): Region[] {
  if (!graph || graph.regions.length === 0) return [];
  const order = new Map(nodes.map((node, at) => [node.id, at]));
  const region = new Map(graph.regions.map((one) => [one.id, one]));
  const around = new Map<string, string>();
  // Outer regions come first, so the innermost region wins.
  for (const one of graph.regions) for (const id of one.members) around.set(id, one.id);
  const known = new Set([...region.keys(), ...around.keys(), ...(graph.known ?? [])]);
  const depth = (id: string | undefined): number =>
    id === undefined ? 0 : 1 + depth(region.get(id)?.parent ?? undefined);
  for (const { id } of nodes) {
    if (known.has(id)) continue;
    const beside = edges.flatMap(({ source, target }) => (source === id ? [target] : target === id ? [source] : []));
    const [inner] = beside.flatMap((one) => around.get(one) ?? []).sort((a, b) => depth(b) - depth(a));
    if (inner !== undefined) around.set(id, inner);
  }
  const members = new Map<string, string[]>(graph.regions.map((one) => [one.id, []]));
  for (const { id } of nodes)
    for (let at = around.get(id); at !== undefined; at = region.get(at)?.parent ?? undefined) members.get(at)?.push(id);
  return graph.regions.flatMap(({ id, kind, parent }) => {
    const inside = members.get(id) ?? [];
    return order.has(id) && inside.length > 0 ? [{ id, kind, members: inside, parent: openParent(parent) }] : [];
  });

  function openParent(parent: string | null): string | null {
    return parent === null || order.has(parent) ? parent : openParent(region.get(parent)?.parent ?? null);
  }
}

/** Edges that the document implies: to the branches that a parallel names, and along the steps that a loop lists. */
export function impliedEdges({ nodes, edges, graph }: Definition): DefinitionEdge[] {
  if (!graph || graph.implied.length === 0) return [];
  const ids = new Set(nodes.map((node) => node.id));
  const written = new Set(edges.map((edge) => `${edge.source}\n${edge.target}`));
  return graph.implied.filter(
    ({ source, target }) => ids.has(source) && ids.has(target) && !written.has(`${source}\n${target}`),
  );
}
