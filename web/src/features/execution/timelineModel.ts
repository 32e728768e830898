/** The timeline of an execution, folded from its journal event by event: steps, the state of each node, the edges
 * taken. */
import type { ExecutionStatus, Failure, JournalEvent, Json, JsonObject } from "@/api/views";

export type StepStatus = "pending" | "running" | "waiting" | "done" | "passed" | "failed" | "cancelled";

export interface ScopePart {
  parallel: string;
  visit: number;
  branch: number;
}

export interface Span {
  from: number;
  to: number | null;
  status: StepStatus;
}

export interface StepRecord {
  step: string;
  node: string;
  scope: ScopePart[];
  status: StepStatus;
  /** Row of its first event. */
  seq: number;
  edge: string;
  attempt: number;
  spans: Span[];
  input?: JsonObject | null;
  result?: Json;
  response?: JsonObject | null;
  /** The end of the output that its tools or its code printed and logged. */
  printed?: string;
  writes: Write[];
  failure?: Failure;
  usage?: Partial<Record<string, number>>;
  gate?: string;
  child?: string;
  cached: boolean;
  /** Positions of its events: row and number, alternating. */
  eventPositions: number[];
  /** The round of the innermost loop around it when it began, as in `improve 3`. */
  round: string;
  /** Set if its input and result were dropped from memory; they are loaded again on demand. */
  isSummary?: true;
}

export interface Write {
  path: (string | number)[];
  reduce: string;
  value: Json;
}

export interface NodeRecord {
  node: string;
  steps: string[];
  open: number;
  waiting: number;
  done: number;
  failed: number;
  cancelled: number;
  round: number | null;
  latest: StepStatus;
}

export interface ExecutionTimeline {
  status: ExecutionStatus;
  steps: Map<string, StepRecord>;
  order: string[];
  nodes: Map<string, NodeRecord>;
  takenEdges: Map<string, number>;
  /** For each edge, the number of open steps it led to. */
  activeEdges: Map<string, number>;
  /** The running loops by scope, the innermost last. */
  loops: Map<string, { node: string; round: number }[]>;
  /** The execution this is a fork of, and the last row that was copied. */
  origin: { execution: string; row: number } | null;
  /** The parent execution. */
  parent: string | null;
  /** The node before which a partial run has stopped: a breakpoint, or one step further. */
  before: string | null;
  /** The nodes of a partial run that are mocked. */
  mocked: ReadonlySet<string>;
  from: number;
  to: number;
  seq: number;
  count: number;
}

export function emptyTimeline(): ExecutionTimeline {
  return {
    status: "pending",
    steps: new Map(),
    order: [],
    nodes: new Map(),
    takenEdges: new Map(),
    activeEdges: new Map(),
    loops: new Map(),
    origin: null,
    parent: null,
    before: null,
    mocked: new Set(),
    from: 0,
    to: 0,
    seq: 0,
    count: 0,
  };
}

/** Fold the first `count` events. */
export function timelineOf(events: readonly JournalEvent[], count = events.length): ExecutionTimeline {
  const timeline = emptyTimeline();
  for (let at = 0; at < count; at++) applyEvent(timeline, events[at] as JournalEvent);
  return timeline;
}

/** Apply one event. */
export function applyEvent(timeline: ExecutionTimeline, event: JournalEvent): void {
  timeline.count += 1;
  timeline.seq = event.seq;
  timeline.to = event.at;
  if (timeline.from === 0) timeline.from = event.at;
  const part = HANDLERS[event.kind];
  if (part) part(timeline, event);
  const step = event.step === undefined ? undefined : timeline.steps.get(event.step);
  if (step) {
    step.eventPositions.push(event.seq, event.n);
    if (event.isSummary === true) step.isSummary = true;
  }
  if (event.kind in STATUS_AFTER) {
    timeline.status = STATUS_AFTER[event.kind] as ExecutionStatus;
    timeline.before = Array.isArray(event.before) ? String(event.before[0]) : null;
  }
}

const STATUS_AFTER: Record<string, ExecutionStatus> = {
  started: "running",
  admitted: "running",
  paused: "paused",
  resumed: "running",
  interrupted: "interrupted",
  retried: "running",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

const HANDLERS: Record<string, (timeline: ExecutionTimeline, event: JournalEvent) => void> = {
  step_started(timeline, event) {
    const at = openStep(timeline, event, event.runs === false ? "pending" : "running");
    at.input = (event.input as JsonObject | undefined) ?? null;
  },
  step_passed(timeline, event) {
    const at = openStep(timeline, event, "running");
    at.result = event.result as Json;
    at.writes = writesOf(event);
    closeStep(timeline, at, event.at, "passed");
  },
  step_succeeded(timeline, event) {
    const at = stepOf(timeline, event);
    if (!at) return;
    at.result = event.result as Json;
    at.response = (event.said as JsonObject | undefined) ?? null;
    if (typeof event.printed === "string" && event.printed) at.printed = event.printed;
    at.writes = writesOf(event);
    at.cached = event.cached === true;
    addUsage(at, event);
    closeStep(timeline, at, event.at, "done");
  },
  step_failed(timeline, event) {
    const at = stepOf(timeline, event);
    if (!at) return;
    at.failure = event.failure as Failure;
    addUsage(at, event);
    if (event.final !== false) closeStep(timeline, at, event.at, "failed");
    else endSpan(at, event.at, "failed");
  },
  leaving_failed(timeline, event) {
    const at = stepOf(timeline, event);
    if (!at) return;
    at.failure = event.failure as Failure;
    closeStep(timeline, at, event.at, "failed");
  },
  step_cancelled(timeline, event) {
    const at = stepOf(timeline, event);
    if (at) closeStep(timeline, at, event.at, "cancelled");
  },
  attempt_started(timeline, event) {
    const at = stepOf(timeline, event);
    if (!at) return;
    at.attempt = Number(event.attempt);
    if (event.input) at.input = event.input as JsonObject;
    changeStatus(timeline, at, event.at, "running");
  },
  scopes_opened(timeline, event) {
    const at = stepOf(timeline, event);
    if (at) changeStatus(timeline, at, event.at, "running");
  },
  scopes_closed(timeline, event) {
    const at = stepOf(timeline, event);
    if (!at || isOver(at.status)) return;
    at.result = event.result as Json;
    closeStep(timeline, at, event.at, "done");
  },
  gate_opened(timeline, event) {
    const at = stepOf(timeline, event);
    if (!at) return;
    const gate = event.gate as { id?: string } | string | undefined;
    at.gate = typeof gate === "string" ? gate : (gate?.id ?? at.step);
    changeStatus(timeline, at, event.at, "waiting");
  },
  event_awaited: startWait,
  worker_awaited: startWait,
  timer_set(timeline, event) {
    if (event.purpose === "wait" || event.purpose === "delay" || event.purpose === "retry") startWait(timeline, event);
  },
  child_asked(timeline, event) {
    const at = stepOf(timeline, event);
    if (at && typeof event.child === "string") at.child = event.child;
  },
  loop_entered(timeline, event) {
    const scope = scopeOf(event.scope);
    const open = timeline.loops.get(scope) ?? [];
    timeline.loops.set(scope, [...open, { node: String(event.node), round: 1 }]);
  },
  loop_round(timeline, event) {
    const round = Number(event.round);
    nodeOf(timeline, String(event.node)).round = round;
    const under = timeline.loops.get(scopeOf(event.scope))?.findLast((loop) => loop.node === event.node);
    if (under) under.round = round;
  },
  loop_left(timeline, event) {
    const scope = scopeOf(event.scope);
    const open = timeline.loops.get(scope) ?? [];
    timeline.loops.set(
      scope,
      open.slice(
        0,
        open.findLastIndex((loop) => loop.node === event.node),
      ),
    );
  },
  started(timeline, event) {
    timeline.parent = typeof event.parent === "string" ? event.parent : null;
    const options = event.options as { trial?: { pinned?: JsonObject } } | undefined;
    // Names with "#" are single steps whose results come from an earlier run, not mocks.
    timeline.mocked = new Set(Object.keys(options?.trial?.pinned ?? {}).filter((one) => !one.includes("#")));
  },
  forked(timeline, event) {
    timeline.parent = null;
    timeline.origin = { execution: String(event.origin), row: Number(event.row) };
  },
};

/** Convert a scope to a key. Steps name scopes as objects; events of loops carry the journal's arrays. */
export function scopeOf(scope: unknown): string {
  if (!Array.isArray(scope)) return "";
  return scope
    .map((part) => (Array.isArray(part) ? part : [part.parallel, part.visit, part.branch]))
    .map(([parallel, visit, branch]) => `${parallel}[${visit}.${branch}]`)
    .join("/");
}

function roundAround(timeline: ExecutionTimeline, scope: ScopePart[]): string {
  for (let depth = scope.length; depth >= 0; depth--) {
    const loop = timeline.loops.get(scopeOf(scope.slice(0, depth)))?.at(-1);
    if (loop) return `${loop.node} ${loop.round}`;
  }
  return "";
}

function startWait(timeline: ExecutionTimeline, event: JournalEvent): void {
  const at = stepOf(timeline, event);
  if (at && !isOver(at.status)) changeStatus(timeline, at, event.at, "waiting");
}

export function isOver(status: StepStatus): boolean {
  return status !== "pending" && status !== "running" && status !== "waiting";
}

function openStep(timeline: ExecutionTimeline, event: JournalEvent, status: StepStatus): StepRecord {
  const step = String(event.step);
  const node = String(event.node ?? step);
  const edge = typeof event.edge === "string" ? event.edge : "";
  if (edge) timeline.takenEdges.set(edge, (timeline.takenEdges.get(edge) ?? 0) + 1);
  const again = timeline.steps.get(step);
  if (again) {
    // A retry or a resume opens the step again.
    setStatus(timeline, again, status);
    again.spans.push({ from: event.at, to: null, status });
    return again;
  }
  const scope = (event.scope as ScopePart[] | undefined) ?? [];
  const at: StepRecord = {
    step,
    node,
    scope,
    status,
    seq: event.seq,
    edge,
    attempt: 1,
    spans: [{ from: event.at, to: null, status }],
    writes: [],
    cached: false,
    eventPositions: [],
    round: roundAround(timeline, scope),
  };
  timeline.steps.set(step, at);
  timeline.order.push(step);
  const about = nodeOf(timeline, node);
  about.steps.push(step);
  count(about, status, 1);
  countActive(timeline, at, 1);
  return at;
}

function stepOf(timeline: ExecutionTimeline, event: JournalEvent): StepRecord | undefined {
  return timeline.steps.get(String(event.step));
}

function nodeOf(timeline: ExecutionTimeline, node: string): NodeRecord {
  let found = timeline.nodes.get(node);
  if (!found) {
    found = emptyNodeRecord(node);
    timeline.nodes.set(node, found);
  }
  return found;
}

function changeStatus(timeline: ExecutionTimeline, at: StepRecord, when: number, status: StepStatus): void {
  if (at.status === status && at.spans.at(-1)?.to === null) return;
  endSpan(at, when, at.spans.at(-1)?.status ?? at.status);
  setStatus(timeline, at, status);
  at.spans.push({ from: when, to: null, status });
}

function closeStep(timeline: ExecutionTimeline, at: StepRecord, when: number, status: StepStatus): void {
  endSpan(at, when, status);
  setStatus(timeline, at, status);
}

function setStatus(timeline: ExecutionTimeline, at: StepRecord, status: StepStatus): void {
  const about = nodeOf(timeline, at.node);
  countActive(timeline, at, -1);
  count(about, at.status, -1);
  at.status = status;
  count(about, status, 1);
  countActive(timeline, at, 1);
}

/** Count an open step on the edge that led to it. */
function countActive(timeline: ExecutionTimeline, at: StepRecord, by: number): void {
  if (at.edge && !isOver(at.status)) timeline.activeEdges.set(at.edge, (timeline.activeEdges.get(at.edge) ?? 0) + by);
}

function endSpan(at: StepRecord, when: number, status: StepStatus): void {
  const last = at.spans.at(-1);
  if (!last || last.to !== null) return;
  last.to = when;
  // A wait stays a wait in the timeline; a working span shows how it ended.
  if (last.status !== "waiting" && last.status !== "pending") last.status = status;
}

function count(about: NodeRecord, status: StepStatus, by: number): void {
  if (status === "waiting") about.waiting += by;
  else if (status === "pending" || status === "running") about.open += by;
  else if (status === "failed") about.failed += by;
  else if (status === "cancelled") about.cancelled += by;
  else about.done += by;
  if (by > 0) about.latest = status;
}

function addUsage(at: StepRecord, event: JournalEvent): void {
  const usage = event.usage as Record<string, number> | undefined;
  if (!usage) return;
  at.usage ??= {};
  for (const [name, value] of Object.entries(usage)) {
    if (typeof value === "number") at.usage[name] = (at.usage[name] ?? 0) + value;
  }
}

function writesOf(event: JournalEvent): Write[] {
  const writes = (event.writes as [Write["path"], string, Json, boolean][] | undefined) ?? [];
  // A write of the whole result does not repeat the value in the event.
  return writes.map(([path, reduce, value, whole]) => ({
    path,
    reduce,
    value: whole ? (event.result as Json) : value,
  }));
}

/** The status of a node: open steps take precedence over ended ones. */
export function statusOf(about: NodeRecord | undefined): StepStatus | null {
  if (!about || about.steps.length === 0) return null;
  if (about.waiting > 0) return "waiting";
  if (about.open > 0) return "running";
  return about.latest;
}

/** The record of a node without steps. */
export const emptyNodeRecord = (node: string): NodeRecord => ({
  node,
  steps: [],
  open: 0,
  waiting: 0,
  done: 0,
  failed: 0,
  cancelled: 0,
  round: null,
  latest: "pending",
});
