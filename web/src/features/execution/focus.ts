/** One branch or one round of an execution: its graph shows only what happened there. */

import { branchNumber } from "@/graph/model/nodeNames";
import type { Overlay } from "@/graph/render/overlay";
import {
  type ExecutionTimeline,
  isOver,
  lookOf,
  type NodeRecord,
  type ScopePart,
  type StepRecord,
  untouched,
} from "./timelineModel";

export interface Place {
  key: string;
  kind: "branch" | "round";
  node: string;
  number: number;
}

/** More than so many are not offered one by one. */
export const PLACES_MAX = 300;

/** The branches and rounds there were in a story that goes on, in the order they began: only new steps are looked at. */
export class Places {
  private order: readonly string[] = [];
  private seen = 0;
  private known = new Set<string>();
  private found: readonly Place[] = [];

  /** The same list while there is nothing new in it. */
  of(story: ExecutionTimeline): readonly Place[] {
    if (story.order !== this.order) [this.order, this.seen, this.known, this.found] = [story.order, 0, new Set(), []];
    const fresh: Place[] = [];
    for (; this.seen < story.order.length && this.found.length + fresh.length < PLACES_MAX; this.seen++)
      for (const place of placesIn(story.steps.get(story.order[this.seen] as string) as StepRecord))
        if (!this.known.has(place.key)) {
          this.known.add(place.key);
          fresh.push(place);
        }
    if (fresh.length > 0) this.found = [...this.found, ...fresh];
    return this.found;
  }
}

function placesIn(step: StepRecord): Place[] {
  const found: Place[] = step.scope.map((part) => ({
    key: branchKey(part),
    kind: "branch",
    node: part.parallel,
    number: branchNumber(part.branch),
  }));
  const { round } = step;
  const at = round.lastIndexOf(" ");
  if (round) found.push({ key: round, kind: "round", node: round.slice(0, at), number: Number(round.slice(at + 1)) });
  return found;
}

export function isAt(step: StepRecord, place: string | null): boolean {
  return place === null || step.round === place || step.scope.some((part) => branchKey(part) === place);
}

function branchKey(part: ScopePart): string {
  return `${part.parallel}[${part.visit}.${part.branch}]`;
}

type Shown = Parameters<Overlay["show"]>;

/** What the graph shows: of everything, or of one place. */
export function overlayOf(story: ExecutionTimeline, place: string | null): Shown {
  const boxes: Shown[0] = new Map();
  if (place === null) {
    for (const [node, about] of story.nodes) put(boxes, node, about);
    if (story.before !== null)
      boxes.set(story.before, { count: "", round: null, ...boxes.get(story.before), look: "paused" });
    return [boxes, story.taken, story.active];
  }
  const [taken, active] = [new Map<string, number>(), new Map<string, number>()];
  const nodes = new Map<string, NodeRecord>();
  for (const name of story.order) {
    const step = story.steps.get(name) as StepRecord;
    if (!isAt(step, place)) continue;
    nodes.set(step.node, counted(nodes.get(step.node), step));
    if (!step.edge) continue;
    taken.set(step.edge, (taken.get(step.edge) ?? 0) + 1);
    if (!isOver(step.status)) active.set(step.edge, (active.get(step.edge) ?? 0) + 1);
  }
  for (const [node, about] of nodes) put(boxes, node, about);
  return [boxes, taken, active];
}

function put(boxes: Shown[0], node: string, about: NodeRecord): void {
  const look = lookOf(about);
  if (look === null) return;
  const over = about.done + about.failed + about.cancelled;
  const all = about.steps.length;
  boxes.set(node, { look, count: all > 1 ? `${over}/${all}` : "", round: about.round });
}

function counted(about: NodeRecord | undefined, { step, node, status }: StepRecord): NodeRecord {
  const now = about ?? untouched(node);
  const field =
    status === "waiting"
      ? "waiting"
      : !isOver(status)
        ? "open"
        : status === "failed" || status === "cancelled"
          ? status
          : "done";
  return { ...now, steps: [...now.steps, step], [field]: now[field] + 1, latest: status };
}
