/** Graph traversal: start nodes, reachability, and the order in which control reaches the nodes. */

/** Successors of each node. Every node is a key. */
export type Adjacency = Map<string, string[]>;

/** Build the adjacency of the given nodes; arrows to or from unknown nodes are ignored. */
export function adjacencyOf(ids: Iterable<string>, arrows: Iterable<{ source: string; target: string }>): Adjacency {
  const adjacency: Adjacency = new Map();
  for (const id of ids) adjacency.set(id, []);
  for (const { source, target } of arrows) if (adjacency.has(target)) adjacency.get(source)?.push(target);
  return adjacency;
}

/** Start nodes: nodes without predecessors, then one node of each part that those do not reach, in document order. */
export function startNodesOf(adjacency: Adjacency): string[] {
  const entered = new Set([...adjacency].flatMap(([source, targets]) => targets.filter((one) => one !== source)));
  const heads = [...adjacency.keys()].filter((id) => !entered.has(id));
  const seen = reachableFrom(adjacency, heads);
  for (const id of adjacency.keys())
    if (!seen.has(id)) {
      heads.push(id);
      for (const one of reachableFrom(adjacency, [id])) seen.add(one);
    }
  return heads;
}

/** Return all nodes reachable from `from`, including those, without passing through `avoid`. */
export function reachableFrom(
  adjacency: Adjacency,
  from: Iterable<string>,
  avoid: ReadonlySet<string> = new Set(),
): Set<string> {
  const seen = new Set([...from].filter((id) => !avoid.has(id)));
  const waiting = [...seen];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
    for (const next of adjacency.get(id) ?? [])
      if (!seen.has(next) && !avoid.has(next)) {
        seen.add(next);
        waiting.push(next);
      }
  return seen;
}

/**
 * Sort nodes so that each precedes its successors (back edges are ignored) and a branch stays together. Iterative,
 * because a recursion could overflow the stack on long chains.
 */
export function flowOrder(adjacency: Adjacency): string[] {
  const over: string[] = [];
  const met = new Set<string>();
  // The traversal emits nodes in post-order and reverses the result, so it visits heads and successors from last to
  // first.
  for (const head of startNodesOf(adjacency).toReversed()) {
    if (met.has(head)) continue;
    met.add(head);
    const stack: { id: string; next: number }[] = [{ id: head, next: (adjacency.get(head)?.length ?? 0) - 1 }];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = adjacency.get(top.id)?.[top.next--];
      if (next === undefined) {
        over.push(top.id);
        stack.pop();
      } else if (!met.has(next)) {
        met.add(next);
        stack.push({ id: next, next: (adjacency.get(next)?.length ?? 0) - 1 });
      }
    }
  }
  return over.reverse();
}
