/** Random graphs for tests, reproducible by seed: chains, parallels, nested loops, joins, back edges, several ends. */
import type { TFunction } from "i18next";
import type { Definition, DefinitionEdge, DefinitionGraph, DefinitionNode } from "@/api/views";

/** A translation function without a language: returns the default value, or the key. */
export const untranslated = ((key: string, otherwise?: string) => otherwise ?? key) as TFunction;

export type Random = (below: number) => number;

export function randomOf(seed: number): Random {
  let state = (seed * 7919 + 17) % 2147483647;
  return (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
}

const WORDS = ["", "", "ok", "else", "score >= 0.8", "category = “complaint” and more", "“Is the customer angry?”"];

/** Generate a workflow: parts in sequence, each a step, a decision, a parallel with its join, or a loop. */
export function workflowOf(random: Random, size: number): Definition {
  const regions: DefinitionGraph["regions"] = [];
  const open: string[] = [];
  /** Record a parallel or a loop: nodes that `make` creates are its members. */
  const within = <T>(id: string, kind: "parallel" | "loop", make: () => T): T => {
    const parent = open.at(-1) ?? null;
    const first = nodes.length;
    open.push(id);
    const made = make();
    open.pop();
    regions.push({ id, kind, parent, members: nodes.slice(first).map((one) => one.id) });
    return made;
  };
  const nodes: DefinitionNode[] = [];
  const edges: DefinitionEdge[] = [];
  const node = (type: string) => {
    const id = `n${nodes.length}`;
    nodes.push({ id, type });
    return id;
  };
  const lead = (source: string, target: string, type?: string) => {
    const words = WORDS[random(WORDS.length)] ?? "";
    const condition = type ? { type } : words ? { type: "label", label: words } : undefined;
    edges.push({ source, target, ...(condition ? { condition } : {}) });
  };
  const part = (depth: number): [string, string] => {
    const kind = depth > 2 || nodes.length > size ? 0 : random(6);
    if (kind < 2) {
      const only = node("agent");
      return [only, only];
    }
    if (kind === 2) {
      const begin = node("loop");
      const [first, last] = within(begin, "loop", () => chain(depth + 1, 1 + random(4)));
      lead(begin, first);
      lead(last, begin);
      return [begin, begin];
    }
    const isFan = kind < 5;
    const begin = node(isFan ? "parallel" : "decision");
    const fan = () => Array.from({ length: 1 + random(4) }, () => chain(depth + 1, 1 + random(kind === 4 ? 9 : 3)));
    const ways = isFan ? within(begin, "parallel", fan) : fan();
    const end = node(isFan ? "join" : "agent");
    for (const [first, last] of ways) {
      lead(begin, first);
      lead(last, end);
    }
    if (!isFan && random(2) === 0) lead(begin, end);
    return [begin, end];
  };
  const chain = (depth: number, length: number): [string, string] => {
    const [first, end] = part(depth);
    let last = end;
    for (let at = 1; at < length; at++) {
      const [next, after] = part(depth);
      lead(last, next);
      last = after;
    }
    return [first, last];
  };
  const apart = 1 + random(2);
  for (let at = 0; at < apart; at++) chain(0, 1 + random(7));
  // Back edges, error edges, and additional ends.
  for (let more = random(4); more > 0; more--) {
    const [one, other] = [nodes[random(nodes.length)], nodes[random(nodes.length)]] as [DefinitionNode, DefinitionNode];
    lead(one.id, random(3) === 0 ? node("end") : other.id, random(2) === 0 ? "error" : undefined);
  }
  regions.sort((a, b) => b.members.length - a.members.length);
  return { id: "made", nodes, edges, graph: { regions, implied: [], known: nodes.map((one) => one.id) } };
}
