/** Which nodes can be connected. The server's check reports all other problems of the graph. */
import type { Definition, DefinitionNode } from "@/api/views";

export type Refusal = "note" | "intoStart" | "fromEnd" | "itself" | "already";

/** Node types that choose among their edges: they may have a self-loop and parallel edges. */
const BRANCHING: ReadonlySet<string> = new Set([
  "human",
  "checkpoint",
  "decision",
  "conditional",
  "loop",
  "tool_executor",
]);

export function refusalOf(
  definition: Definition,
  source: DefinitionNode,
  target: DefinitionNode,
  but?: { source: string; target: string },
): Refusal | null {
  if (source.type === "note" || target.type === "note") return "note";
  if (target.type === "start") return "intoStart";
  if (source.type === "end") return "fromEnd";
  if (source.id === target.id && !BRANCHING.has(source.type)) return "itself";
  const isAlready = definition.edges.some(
    (edge) => edge.source === source.id && edge.target === target.id && !(but && isSame(edge, but)),
  );
  return isAlready && !BRANCHING.has(source.type) ? "already" : null;
}

function isSame(a: { source: string; target: string }, b: { source: string; target: string }): boolean {
  return a.source === b.source && a.target === b.target;
}

/** The reason why each node cannot be the other end; nodes that can are absent. */
export function refusalsFrom(definition: Definition, id: string, end: "source" | "target"): Map<string, Refusal> {
  const from = definition.nodes.find((node) => node.id === id);
  const found = new Map<string, Refusal>();
  for (const node of from ? definition.nodes : []) {
    const one = from as DefinitionNode;
    const why = end === "source" ? refusalOf(definition, one, node) : refusalOf(definition, node, one);
    if (why) found.set(node.id, why);
  }
  return found;
}
