/** The lanes of a timeline: steps in the order they began, grouped by branch. */
import { type ExecutionTimeline, type ScopePart, type StepRecord, scopeOf } from "./timelineModel";

export type Lane =
  | { kind: "step"; key: string; depth: number; step: StepRecord }
  | {
      kind: "branch";
      key: string;
      depth: number;
      /** The parallel that opened the branch, and the branch number. */
      node: string;
      branch: number;
      from: number;
      to: number | null;
      steps: number;
      failed: number;
      isOpen: boolean;
    };

/** With more branches than this, all are collapsed at first. */
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

/** The lanes of a growing timeline. Grouped steps stay in place; each call adds only the new ones. */
export class LaneBuilder {
  private order: readonly string[] = [];
  private stepsAdded = 0;
  private root = group("");
  private branches = 0;

  of(timeline: ExecutionTimeline, toggled: ReadonlyMap<string, boolean> = new Map()): Lane[] {
    if (timeline.order !== this.order) this.reset(timeline.order);
    for (; this.stepsAdded < timeline.order.length; this.stepsAdded++)
      this.add(timeline.steps.get(timeline.order[this.stepsAdded] as string) as StepRecord);
    const lanes: Lane[] = [];
    const open = this.branches <= OPEN_MAX;
    flatten(this.root, 0, lanes, (key) => toggled.get(key) ?? open);
    return lanes;
  }

  /** Another position in time has its own order of steps: start again. */
  private reset(order: readonly string[]): void {
    this.order = order;
    this.stepsAdded = 0;
    this.root = group("");
    this.branches = 0;
  }

  private add(step: StepRecord): void {
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

function flatten(group: Group, depth: number, lanes: Lane[], isOpen: (key: string) => boolean): void {
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
    if (open) flatten(item, depth + 1, lanes, isOpen);
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

/** Positions of the axis marks: round intervals after the start. */
export function ticksOf(length: number, marks: number): number[] {
  const step = STEPS_S.find((one) => length / one <= marks) ?? length / marks;
  const found: number[] = [];
  for (let at = 0; at <= length && found.length < 200; at += step) found.push(at);
  return found;
}
