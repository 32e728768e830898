/** What belongs to a parallel or a loop: its body, as the engine sees it.

    parallel ─▶ [ a ─▶ b ] ─▶ join        what lies between a parallel and its join
    loop ─▶ [ a ─▶ b ] ─▶ loop            what a round passes before it is back at its loop

A group is named by the node that opens it. Groups stand side by side or inside each other; one that would cut through
another is left out (the checker tells what is wrong there).
*/
import type { Definition, DefinitionEdge, DefinitionNode } from "@/api/views";
import { type Adjacency, adjacencyOf, dominatorsOf, headsOf, reach, turned } from "./adjacency";

export interface Region {
  /** The parallel or loop that opens it; it stands outside, before it. */
  id: string;
  kind: "parallel" | "loop";
  /** All that is inside, also inside of groups inside. */
  members: string[];
  /** How many that are, where some of them are folded away. */
  count?: number;
  parent: string | null;
}

const KINDS: Record<string, Region["kind"]> = { parallel: "parallel", fanout: "parallel", loop: "loop" };

export function regionsOf(definition: Definition): Region[] {
  const openers = definition.nodes.filter((node) => node.type in KINDS);
  if (openers.length === 0) return [];
  const edges = [...definition.edges.filter((edge) => edge.condition?.type !== "never"), ...impliedEdges(definition)];
  const ways = adjacencyOf(
    definition.nodes.map((node) => node.id),
    edges,
  );
  const inside = new Map<string, Set<string>>();
  if (openers.some((node) => KINDS[node.type] === "parallel")) parallelBodies(definition.nodes, edges, ways, inside);
  if (openers.some((node) => KINDS[node.type] === "loop")) loopBodies(openers, edges, ways, inside);
  return nested(openers, inside, new Map(definition.nodes.map((node, at) => [node.id, at])));
}

/** Edges that the document leaves unsaid: the branches a parallel names, the steps a loop lists. */
export function impliedEdges(definition: Definition): DefinitionEdge[] {
  const known = new Set(definition.edges.map((edge) => `${edge.source}\n${edge.target}`));
  const leaves = new Set(definition.edges.map((edge) => edge.source));
  const ids = new Set(definition.nodes.map((node) => node.id));
  const found: DefinitionEdge[] = [];
  const imply = (source: string, target: string) => {
    if (!known.has(`${source}\n${target}`)) found.push({ source, target });
  };
  for (const node of definition.nodes) {
    const kind = KINDS[node.type];
    if (kind === "parallel") for (const id of namesIn(node.config?.branches, ids)) imply(node.id, id);
    if (kind !== "loop") continue;
    const chain = namesIn(node.config?.body, ids);
    if (chain.length === 0) continue;
    [node.id, ...chain].forEach((source, at) => {
      if (at === 0 || !leaves.has(source)) imply(source, chain[at] ?? node.id);
    });
  }
  return found;
}

function namesIn(value: unknown, ids: ReadonlySet<string>): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string" && ids.has(one)) : [];
}

/** Control carries its open parallels along; a join takes off the innermost, or those down to the one it names. */
function parallelBodies(
  nodes: readonly DefinitionNode[],
  edges: readonly DefinitionEdge[],
  ways: Adjacency,
  inside: Map<string, Set<string>>,
): void {
  const about = new Map(nodes.map((node) => [node.id, node]));
  const out = new Map<string, DefinitionEdge[]>(nodes.map((node) => [node.id, []]));
  for (const edge of edges) out.get(edge.source)?.push(edge);
  const met = new Map<string, string[]>();
  for (const head of headsOf(ways)) {
    if (met.has(head)) continue;
    met.set(head, []);
    const waiting = [head];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      const open = met.get(id) ?? [];
      const node = about.get(id);
      const branches =
        node && KINDS[node.type] === "parallel" ? namesIn(node.config?.branches, new Set(about.keys())) : [];
      for (const edge of out.get(id) ?? []) {
        const target = about.get(edge.target);
        if (!node || !target) continue;
        const begins =
          KINDS[node.type] === "parallel" &&
          edge.condition?.type !== "error" &&
          (branches.length === 0 || branches.includes(target.id));
        const carried = afterJoin(target, begins ? [...open, id] : open);
        const before = met.get(target.id);
        if (before === undefined) {
          met.set(target.id, carried);
          waiting.push(target.id);
        } else if (target.type === "end") {
          // It ends whatever branch comes to it: it is inside of what all of them are inside of.
          met.set(
            target.id,
            before.filter((one, at) => carried[at] === one),
          );
        }
      }
    }
  }
  for (const node of nodes) if (KINDS[node.type] === "parallel") inside.set(node.id, new Set());
  for (const [id, open] of met) for (const one of open) if (one !== id) inside.get(one)?.add(id);
}

function afterJoin(target: DefinitionNode, open: string[]): string[] {
  if (target.type !== "join" && target.type !== "merge") return open;
  const of = target.config?.of;
  const depth = typeof of === "string" ? open.indexOf(of) : open.length - 1;
  return depth < 0 ? open : open.slice(0, depth);
}

function loopBodies(
  openers: readonly DefinitionNode[],
  edges: readonly DefinitionEdge[],
  ways: Adjacency,
  inside: Map<string, Set<string>>,
): void {
  const dominators = dominatorsOf(ways);
  const back = turned(ways);
  const breaks = new Set(edges.filter((edge) => edge.mark === "break").map((edge) => `${edge.source}\n${edge.target}`));
  const staying: Adjacency = new Map(
    [...ways].map(([source, targets]) => [source, targets.filter((one) => !breaks.has(`${source}\n${one}`))]),
  );
  for (const loop of openers) {
    if (KINDS[loop.type] !== "loop") continue;
    const first = (back.get(loop.id) ?? []).filter((one) => one !== loop.id);
    const returning = reach(back, first, dominators(loop.id));
    const leads = edges.filter((edge) => edge.source === loop.id && edge.condition?.type !== "error");
    const marked = leads.filter((edge) => edge.mark === "body");
    const listed = namesIn(loop.config?.body, returning);
    const begins =
      marked.length > 0
        ? marked.map((edge) => edge.target)
        : listed.length > 0
          ? listed.slice(0, 1)
          : leads.filter((edge) => edge.mark === undefined).map((edge) => edge.target);
    const outside = new Set([...ways.keys()].filter((id) => !returning.has(id)));
    inside.set(loop.id, reach(staying, begins, outside.add(loop.id)));
  }
}

/** The larger ones first, so that each finds what it is inside of. */
function nested(
  openers: readonly DefinitionNode[],
  inside: ReadonlyMap<string, Set<string>>,
  place: ReadonlyMap<string, number>,
): Region[] {
  const size = (node: DefinitionNode) => inside.get(node.id)?.size ?? 0;
  const innermost = new Map<string, string>();
  const found: Region[] = [];
  for (const node of [...openers].sort((a, b) => size(b) - size(a))) {
    const members = inside.get(node.id);
    if (!members || members.size === 0) continue;
    const around = new Set([...members].map((id) => innermost.get(id) ?? ""));
    const parent = [...around][0] || null;
    const isWhole = around.size === 1 && (parent === null || innermost.get(node.id) === parent);
    if (!isWhole || members.has(node.id)) continue;
    for (const id of members) innermost.set(id, node.id);
    const sorted = [...members].sort((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0));
    found.push({ id: node.id, kind: KINDS[node.type] ?? "loop", members: sorted, parent });
  }
  return found;
}
