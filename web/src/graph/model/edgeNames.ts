/** Names of edges: the id of the edge, otherwise `source->target`, numbered from the second parallel edge on. */
import type { DefinitionEdge } from "@/api/views";

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
