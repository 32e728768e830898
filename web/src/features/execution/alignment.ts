/** Two executions side by side: the same steps in one line, and where they part. */
import { changesIn } from "@/values/changes";
import { type ExecutionTimeline, type StepRecord, scopeOf } from "./timelineModel";

export interface Pair {
  step: string;
  a: StepRecord | undefined;
  b: StepRecord | undefined;
  /** How they differ; "same" where they do not. */
  how: "same" | "only-a" | "only-b" | "status" | "result";
}

/** In the order they ran: the steps of the first, and those of the second where they came between them. */
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
  return { step, a, b, how: howOf(a, b) };
}

function howOf(a: StepRecord | undefined, b: StepRecord | undefined): Pair["how"] {
  if (!a) return "only-b";
  if (!b) return "only-a";
  if (a.status !== b.status) return "status";
  return changesIn(a.result, b.result).length > 0 ? "result" : "same";
}

/** Steps of one branch or one round, as the table shows them: below each other, whatever ran between them. */
export interface Group {
  /** The branch (`each[1.0]`) and the round (`improve 2`) around them; both empty at the top. */
  branch: string;
  round: string;
  pairs: Pair[];
  /** Only one of them came there, or they differ in it, or nowhere. */
  how: "same" | "only-a" | "only-b" | "differs";
}

/** Each branch in one piece, each round in one piece, in the order they began. */
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
    const group: Group = { branch, round, pairs: [pair], how: "same" };
    // A branch goes on below itself, also where others ran meanwhile.
    const behind = branch === "" ? undefined : known?.at(-1);
    found.splice(behind ? found.indexOf(behind) + 1 : found.length, 0, group);
    branches.set(branch, [...(known ?? []), group]);
  }
  for (const group of found) group.how = together(group.pairs);
  return found;
}

function together(pairs: readonly Pair[]): Group["how"] {
  const hows = new Set(pairs.map((pair) => pair.how));
  const [how] = hows;
  return hows.size === 1 && (how === "same" || how === "only-a" || how === "only-b") ? how : "differs";
}

/** The first place where they differ; -1: they do not. */
export function partsAt(pairs: readonly Pair[]): number {
  return pairs.findIndex((pair) => pair.how !== "same");
}
