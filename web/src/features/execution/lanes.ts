/** What a timeline draws: the steps in the order they began, gathered under the branch they ran in. */
import { type StepStory, type Story, scopeOf } from "./story";

export type Lane =
  | { kind: "step"; key: string; depth: number; step: StepStory }
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

interface Group {
  key: string;
  node: string;
  branch: number;
  items: (StepStory | Group)[];
  groups: Map<string, Group>;
}

export function lanesOf(story: Story, toggled: ReadonlyMap<string, boolean> = new Map()): Lane[] {
  const root: Group = { key: "", node: "", branch: 0, items: [], groups: new Map() };
  const all = new Map<string, Group>();
  for (const name of story.order) {
    const step = story.steps.get(name) as StepStory;
    let group = root;
    step.scope.forEach((part, at) => {
      const key = scopeOf(step.scope.slice(0, at + 1));
      let inner = group.groups.get(key);
      if (!inner) {
        inner = { key, node: part.parallel, branch: part.branch, items: [], groups: new Map() };
        group.groups.set(key, inner);
        group.items.push(inner);
        all.set(key, inner);
      }
      group = inner;
    });
    group.items.push(step);
  }
  const lanes: Lane[] = [];
  const open = all.size <= OPEN_MAX;
  spread(root, 0, lanes, (key) => toggled.get(key) ?? open);
  return lanes;
}

function spread(group: Group, depth: number, lanes: Lane[], isOpen: (key: string) => boolean): void {
  for (const item of group.items) {
    if (!("items" in item)) {
      lanes.push({ kind: "step", key: item.step, depth, step: item });
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
            from: item.spans[0]?.from ?? 0,
            to: item.spans.at(-1)?.to ?? null,
            steps: 1,
            failed: item.status === "failed" ? 1 : 0,
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
