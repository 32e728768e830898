/** Align the steps of two executions, and find the first difference. */
import { changesIn } from "@/values/changes";
import { type ExecutionTimeline, type StepRecord, scopeOf } from "./timelineModel";

export interface Pair {
  step: string;
  a: StepRecord | undefined;
  b: StepRecord | undefined;
  /** How the steps differ, or "same". */
  difference: "same" | "only-a" | "only-b" | "status" | "result";
}

/** Pair the steps in the order they ran: the steps of the first execution, and between them those that only the second
 * has. */
export function pairsOf(a: ExecutionTimeline, b: ExecutionTimeline): Pair[] {
  const found: Pair[] = [];
  let at = 0;
  const upTo = (end: number) => {
    for (; at < end; at++) {
      const step = b.order[at] as string;
      if (!a.steps.has(step)) found.push(pairOf(step, a, b));
    }
  };
  const places = new Map(b.order.map((step, place) => [step, place]));
  for (const step of a.order) {
    const place = places.get(step);
    if (place !== undefined && place >= at) upTo(place);
    found.push(pairOf(step, a, b));
  }
  upTo(b.order.length);
  return found;
}

function pairOf(step: string, one: ExecutionTimeline, other: ExecutionTimeline): Pair {
  const [a, b] = [one.steps.get(step), other.steps.get(step)];
  return { step, a, b, difference: differenceOf(a, b) };
}

function differenceOf(a: StepRecord | undefined, b: StepRecord | undefined): Pair["difference"] {
  if (!a) return "only-b";
  if (!b) return "only-a";
  if (a.status !== b.status) return "status";
  return changesIn(a.result, b.result).length > 0 ? "result" : "same";
}

/** Steps of one branch or round. The table shows them together, whatever ran between them. */
export interface Group {
  /** The enclosing branch (`each[1.0]`) and round (`improve 2`); both empty at the top level. */
  branch: string;
  round: string;
  pairs: Pair[];
  /** "only-a" or "only-b" if only one execution entered the group; "differs" if any step differs. */
  difference: "same" | "only-a" | "only-b" | "differs";
}

/** Group the pairs: each branch and each round is contiguous, in the order they began. */
export function groupsOf(pairs: readonly Pair[]): Group[] {
  const found: Group[] = [];
  const branches = new Map<string, Group[]>();
  for (const pair of pairs) {
    const { scope, round } = (pair.a ?? pair.b) as StepRecord;
    const branch = scopeOf(scope);
    const known = branches.get(branch);
    const last = branch === "" ? found.at(-1) : known?.at(-1);
    if (last && last.branch === branch && last.round === round) {
      last.pairs.push(pair);
      continue;
    }
    const group: Group = { branch, round, pairs: [pair], difference: "same" };
    // A later round of a branch follows the branch's previous group, even if other branches ran between them.
    const behind = branch === "" ? undefined : known?.at(-1);
    found.splice(behind ? found.indexOf(behind) + 1 : found.length, 0, group);
    branches.set(branch, [...(known ?? []), group]);
  }
  for (const group of found) group.difference = groupDifference(group.pairs);
  return found;
}

function groupDifference(pairs: readonly Pair[]): Group["difference"] {
  const differences = new Set(pairs.map((pair) => pair.difference));
  const [difference] = differences;
  return differences.size === 1 && (difference === "same" || difference === "only-a" || difference === "only-b")
    ? difference
    : "differs";
}

/** Index of the first difference; -1 for equal executions. */
export function firstDifference(pairs: readonly Pair[]): number {
  return pairs.findIndex((pair) => pair.difference !== "same");
}
