/** Walks over a graph: its beginnings, and the order in which control reaches the nodes. */

/** From each node to others. Every node is a key. */
export type Adjacency = Map<string, string[]>;

/** Ways by `arrows` between known nodes. */
export function adjacencyOf(ids: Iterable<string>, arrows: Iterable<{ source: string; target: string }>): Adjacency {
  const ways: Adjacency = new Map();
  for (const id of ids) ways.set(id, []);
  for (const { source, target } of arrows) if (ways.has(target)) ways.get(source)?.push(target);
  return ways;
}

/** Where control begins: nodes that nothing leads to, then whatever those do not reach, in the order of the document. */
export function headsOf(ways: Adjacency): string[] {
  const entered = new Set([...ways].flatMap(([source, targets]) => targets.filter((one) => one !== source)));
  const heads = [...ways.keys()].filter((id) => !entered.has(id));
  const seen = reach(ways, heads);
  for (const id of ways.keys())
    if (!seen.has(id)) {
      heads.push(id);
      for (const one of reach(ways, [id])) seen.add(one);
    }
  return heads;
}

/** What can be reached, the first ones included, never over what is avoided. */
export function reach(ways: Adjacency, from: Iterable<string>, avoid: ReadonlySet<string> = new Set()): Set<string> {
  const seen = new Set([...from].filter((id) => !avoid.has(id)));
  const waiting = [...seen];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
    for (const next of ways.get(id) ?? [])
      if (!seen.has(next) && !avoid.has(next)) {
        seen.add(next);
        waiting.push(next);
      }
  return seen;
}

/** Each before those it leads to, ways back left out; a branch stays together. No recursion: chains may be long. */
export function inOrder(ways: Adjacency): string[] {
  const over: string[] = [];
  const met = new Set<string>();
  // The last begun ends up first, so everything is begun from behind.
  for (const head of headsOf(ways).toReversed()) {
    if (met.has(head)) continue;
    met.add(head);
    const stack: { id: string; next: number }[] = [{ id: head, next: (ways.get(head)?.length ?? 0) - 1 }];
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = ways.get(top.id)?.[top.next--];
      if (next === undefined) {
        over.push(top.id);
        stack.pop();
      } else if (!met.has(next)) {
        met.add(next);
        stack.push({ id: next, next: (ways.get(next)?.length ?? 0) - 1 });
      }
    }
  }
  return over.reverse();
}
