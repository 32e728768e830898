/** What may be connected with what. The rest of what is wrong with a graph the checker tells. */
import type { Definition, DefinitionNode } from "@/api/views";

export type Refusal = "note" | "intoStart" | "fromEnd" | "itself" | "already";

/** These choose among their edges, so that one of them may lead back to where it came from, or twice to one place. */
const CHOOSES: ReadonlySet<string> = new Set([
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
  if (source.id === target.id && !CHOOSES.has(source.type)) return "itself";
  const isAlready = definition.edges.some(
    (edge) => edge.source === source.id && edge.target === target.id && !(but && isSame(edge, but)),
  );
  return isAlready && !CHOOSES.has(source.type) ? "already" : null;
}

function isSame(a: { source: string; target: string }, b: { source: string; target: string }): boolean {
  return a.source === b.source && a.target === b.target;
}

/** Why each node cannot be the other end, where it cannot. */
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
