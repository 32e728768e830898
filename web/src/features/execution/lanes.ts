/** What a timeline draws: the steps in the order they began, gathered under the branch they ran in. */
import { type ExecutionTimeline, type ScopePart, type StepRecord, scopeOf } from "./timelineModel";

export type Lane =
  | { kind: "step"; key: string; depth: number; step: StepRecord }
  | {
      kind: "branch";
      key: string;
      depth: number;
      /** The parallel that opened it, and its number there. */
      node: string;
      branch: number;
      from: number;
      to: number | null;
      steps: number;
      failed: number;
      isOpen: boolean;
    };

/** From so many branches on they are shut at first. */
export const OPEN_MAX = 12;

type StepLane = Extract<Lane, { kind: "step" }>;

interface Group {
  key: string;
  node: string;
  branch: number;
  items: (StepLane | Group)[];
  groups: Map<string, Group>;
}

const group = (key: string, node = "", branch = 0): Group => ({ key, node, branch, items: [], groups: new Map() });

/** The lanes of a story that goes on: steps that are gathered stay where they are, and only new ones are looked at. */
export class Lanes {
  private order: readonly string[] = [];
  private gathered = 0;
  private root = group("");
  private branches = 0;

  of(story: ExecutionTimeline, toggled: ReadonlyMap<string, boolean> = new Map()): Lane[] {
    if (story.order !== this.order) this.begin(story.order);
    for (; this.gathered < story.order.length; this.gathered++)
      this.gather(story.steps.get(story.order[this.gathered] as string) as StepRecord);
    const lanes: Lane[] = [];
    const open = this.branches <= OPEN_MAX;
    spread(this.root, 0, lanes, (key) => toggled.get(key) ?? open);
    return lanes;
  }

  /** Another moment in time is another story. */
  private begin(order: readonly string[]): void {
    this.order = order;
    this.gathered = 0;
    this.root = group("");
    this.branches = 0;
  }

  private gather(step: StepRecord): void {
    let at = this.root;
    for (let depth = 1; depth <= step.scope.length; depth++) {
      const key = scopeOf(step.scope.slice(0, depth));
      let inner = at.groups.get(key);
      if (!inner) {
        const { parallel, branch } = step.scope[depth - 1] as ScopePart;
        inner = group(key, parallel, branch);
        at.groups.set(key, inner);
        at.items.push(inner);
        this.branches += 1;
      }
      at = inner;
    }
    at.items.push({ kind: "step", key: step.step, depth: step.scope.length, step });
  }
}

function spread(group: Group, depth: number, lanes: Lane[], isOpen: (key: string) => boolean): void {
  for (const item of group.items) {
    if (!("items" in item)) {
      lanes.push(item);
      continue;
    }
    const open = isOpen(item.key);
    lanes.push({
      kind: "branch",
      key: item.key,
      depth,
      node: item.node,
      branch: item.branch,
      isOpen: open,
      ...extent(item),
    });
    if (open) spread(item, depth + 1, lanes, isOpen);
  }
}

function extent(group: Group): { from: number; to: number | null; steps: number; failed: number } {
  let [from, to, steps, failed]: [number, number | null, number, number] = [Number.POSITIVE_INFINITY, 0, 0, 0];
  for (const item of group.items) {
    const one =
      "items" in item
        ? extent(item)
        : {
            from: item.step.spans[0]?.from ?? 0,
            to: item.step.spans.at(-1)?.to ?? null,
            steps: 1,
            failed: item.step.status === "failed" ? 1 : 0,
          };
    from = Math.min(from, one.from);
    to = to === null || one.to === null ? null : Math.max(to, one.to);
    steps += one.steps;
    failed += one.failed;
  }
  return { from, to, steps, failed };
}

const STEPS_S = [0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 86_400, 7 * 86_400];

/** Where the axis is marked: some round moments after the beginning. */
export function ticksOf(length: number, marks: number): number[] {
  const step = STEPS_S.find((one) => length / one <= marks) ?? length / marks;
  const found: number[] = [];
  for (let at = 0; at <= length && found.length < 200; at += step) found.push(at);
  return found;
}
