/** Restrict the graph to one branch or one round of an execution. */

import { branchNumber } from "@/graph/model/nodeNames";
import type { Overlay } from "@/graph/render/overlay";
import {
  type ExecutionTimeline,
  emptyNodeRecord,
  isOver,
  type NodeRecord,
  type ScopePart,
  type StepRecord,
  statusOf,
} from "./timelineModel";

export interface Focus {
  key: string;
  kind: "branch" | "round";
  node: string;
  number: number;
}

/** At most this many are offered. */
export const FOCUSES_MAX = 300;

/** The branches and rounds of a growing timeline, in the order they began. Each call reads only the new steps. */
export class FocusCollector {
  private order: readonly string[] = [];
  private stepsRead = 0;
  private knownKeys = new Set<string>();
  private found: readonly Focus[] = [];

  /** Returns the same list as before unless it has grown. */
  of(timeline: ExecutionTimeline): readonly Focus[] {
    if (timeline.order !== this.order)
      [this.order, this.stepsRead, this.knownKeys, this.found] = [timeline.order, 0, new Set(), []];
    const fresh: Focus[] = [];
    for (; this.stepsRead < timeline.order.length && this.found.length + fresh.length < FOCUSES_MAX; this.stepsRead++)
      for (const focus of focusesIn(timeline.steps.get(timeline.order[this.stepsRead] as string) as StepRecord))
        if (!this.knownKeys.has(focus.key)) {
          this.knownKeys.add(focus.key);
          fresh.push(focus);
        }
    if (fresh.length > 0) this.found = [...this.found, ...fresh];
    return this.found;
  }
}

function focusesIn(step: StepRecord): Focus[] {
  const found: Focus[] = step.scope.map((part) => ({
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

export function isInFocus(step: StepRecord, focus: string | null): boolean {
  return focus === null || step.round === focus || step.scope.some((part) => branchKey(part) === focus);
}

function branchKey(part: ScopePart): string {
  return `${part.parallel}[${part.visit}.${part.branch}]`;
}

type OverlayArguments = Parameters<Overlay["show"]>;

/** What the graph shows: everything, or one branch or round. */
export function overlayOf(timeline: ExecutionTimeline, focus: string | null): OverlayArguments {
  const boxes: OverlayArguments[0] = new Map();
  if (focus === null) {
    for (const [node, about] of timeline.nodes) put(boxes, node, about);
    if (timeline.before !== null)
      boxes.set(timeline.before, { count: "", round: null, ...boxes.get(timeline.before), look: "paused" });
    return [boxes, timeline.takenEdges, timeline.activeEdges];
  }
  const [taken, active] = [new Map<string, number>(), new Map<string, number>()];
  const nodes = new Map<string, NodeRecord>();
  for (const name of timeline.order) {
    const step = timeline.steps.get(name) as StepRecord;
    if (!isInFocus(step, focus)) continue;
    nodes.set(step.node, counted(nodes.get(step.node), step));
    if (!step.edge) continue;
    taken.set(step.edge, (taken.get(step.edge) ?? 0) + 1);
    if (!isOver(step.status)) active.set(step.edge, (active.get(step.edge) ?? 0) + 1);
  }
  for (const [node, about] of nodes) put(boxes, node, about);
  return [boxes, taken, active];
}

function put(boxes: OverlayArguments[0], node: string, about: NodeRecord): void {
  const look = statusOf(about);
  if (look === null) return;
  const over = about.done + about.failed + about.cancelled;
  const all = about.steps.length;
  boxes.set(node, { look, count: all > 1 ? `${over}/${all}` : "", round: about.round });
}

function counted(about: NodeRecord | undefined, { step, node, status }: StepRecord): NodeRecord {
  const now = about ?? emptyNodeRecord(node);
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
