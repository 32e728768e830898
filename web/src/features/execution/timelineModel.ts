/** What a journal tells, as pages show it: steps, what each node does, which edges were taken. Folded event by event. */
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
  /** The place of its first event. */
  seq: number;
  edge: string;
  attempt: number;
  spans: Span[];
  input?: JsonObject | null;
  result?: Json;
  said?: JsonObject | null;
  /** The end of what its tools, or its code, printed and logged. */
  printed?: string;
  writes: Write[];
  failure?: Failure;
  usage?: Partial<Record<string, number>>;
  gate?: string;
  child?: string;
  cached: boolean;
  /** Where the events are that tell of it: row and number, one after the other. */
  places: number[];
  /** The round of the innermost loop that was under way around it when it began, as in `improve 3`. */
  round: string;
  /** What it was given and brought is not at hand any more: it is read again where somebody looks. */
  isLight?: true;
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
  taken: Map<string, number>;
  /** How often each arrow leads to a step that is open. */
  active: Map<string, number>;
  /** The loops that are under way, by scope: the innermost last. */
  loops: Map<string, { node: string; round: number }[]>;
  /** The execution it is a copy of, and up to which row. */
  origin: { execution: string; row: number } | null;
  /** The execution that it is a sub-workflow of. */
  parent: string | null;
  /** The node before which it stands, at a breakpoint or one step on. */
  before: string | null;
  /** The nodes of a trial whose value its author gave. */
  pinned: ReadonlySet<string>;
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
    taken: new Map(),
    active: new Map(),
    loops: new Map(),
    origin: null,
    parent: null,
    before: null,
    pinned: new Set(),
    from: 0,
    to: 0,
    seq: 0,
    count: 0,
  };
}

/** The story up to the first `count` events. */
export function timelineOf(events: readonly JournalEvent[], count = events.length): ExecutionTimeline {
  const story = emptyTimeline();
  for (let at = 0; at < count; at++) applyEvent(story, events[at] as JournalEvent);
  return story;
}

/** Take one event in. */
export function applyEvent(story: ExecutionTimeline, event: JournalEvent): void {
  story.count += 1;
  story.seq = event.seq;
  story.to = event.at;
  if (story.from === 0) story.from = event.at;
  const part = PARTS[event.kind];
  if (part) part(story, event);
  const step = event.step === undefined ? undefined : story.steps.get(event.step);
  if (step) {
    step.places.push(event.seq, event.n);
    if (event.isLight === true) step.isLight = true;
  }
  if (event.kind in LIFE) {
    story.status = LIFE[event.kind] as ExecutionStatus;
    story.before = Array.isArray(event.before) ? String(event.before[0]) : null;
  }
}

const LIFE: Record<string, ExecutionStatus> = {
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

const PARTS: Record<string, (story: ExecutionTimeline, event: JournalEvent) => void> = {
  step_started(story, event) {
    const at = opened(story, event, event.runs === false ? "pending" : "running");
    at.input = (event.input as JsonObject | undefined) ?? null;
  },
  step_passed(story, event) {
    const at = opened(story, event, "running");
    at.result = event.result as Json;
    at.writes = writesOf(event);
    close(story, at, event.at, "passed");
  },
  step_succeeded(story, event) {
    const at = known(story, event);
    if (!at) return;
    at.result = event.result as Json;
    at.said = (event.said as JsonObject | undefined) ?? null;
    if (typeof event.printed === "string" && event.printed) at.printed = event.printed;
    at.writes = writesOf(event);
    at.cached = event.cached === true;
    add(at, event);
    close(story, at, event.at, "done");
  },
  step_failed(story, event) {
    const at = known(story, event);
    if (!at) return;
    at.failure = event.failure as Failure;
    add(at, event);
    if (event.final !== false) close(story, at, event.at, "failed");
    else endSpan(at, event.at, "failed");
  },
  leaving_failed(story, event) {
    const at = known(story, event);
    if (!at) return;
    at.failure = event.failure as Failure;
    close(story, at, event.at, "failed");
  },
  step_cancelled(story, event) {
    const at = known(story, event);
    if (at) close(story, at, event.at, "cancelled");
  },
  attempt_started(story, event) {
    const at = known(story, event);
    if (!at) return;
    at.attempt = Number(event.attempt);
    if (event.input) at.input = event.input as JsonObject;
    go(story, at, event.at, "running");
  },
  scopes_opened(story, event) {
    const at = known(story, event);
    if (at) go(story, at, event.at, "running");
  },
  scopes_closed(story, event) {
    const at = known(story, event);
    if (!at || isOver(at.status)) return;
    at.result = event.result as Json;
    close(story, at, event.at, "done");
  },
  gate_opened(story, event) {
    const at = known(story, event);
    if (!at) return;
    const gate = event.gate as { id?: string } | string | undefined;
    at.gate = typeof gate === "string" ? gate : (gate?.id ?? at.step);
    go(story, at, event.at, "waiting");
  },
  event_awaited: waits,
  worker_awaited: waits,
  timer_set(story, event) {
    if (event.purpose === "wait" || event.purpose === "delay" || event.purpose === "retry") waits(story, event);
  },
  child_asked(story, event) {
    const at = known(story, event);
    if (at && typeof event.child === "string") at.child = event.child;
  },
  loop_entered(story, event) {
    const scope = scopeOf(event.scope);
    const open = story.loops.get(scope) ?? [];
    story.loops.set(scope, [...open, { node: String(event.node), round: 1 }]);
  },
  loop_round(story, event) {
    const round = Number(event.round);
    nodeOf(story, String(event.node)).round = round;
    const under = story.loops.get(scopeOf(event.scope))?.findLast((loop) => loop.node === event.node);
    if (under) under.round = round;
  },
  loop_left(story, event) {
    const scope = scopeOf(event.scope);
    const open = story.loops.get(scope) ?? [];
    story.loops.set(
      scope,
      open.slice(
        0,
        open.findLastIndex((loop) => loop.node === event.node),
      ),
    );
  },
  started(story, event) {
    story.parent = typeof event.parent === "string" ? event.parent : null;
    const options = event.options as { trial?: { pinned?: JsonObject } } | undefined;
    // What was taken over of single steps they did bring, when they ran.
    story.pinned = new Set(Object.keys(options?.trial?.pinned ?? {}).filter((one) => !one.includes("#")));
  },
  forked(story, event) {
    story.parent = null;
    story.origin = { execution: String(event.origin), row: Number(event.row) };
  },
};

/** A scope as a key: as the steps in it name it. Events of loops carry it as the journal does. */
export function scopeOf(scope: unknown): string {
  if (!Array.isArray(scope)) return "";
  return scope
    .map((part) => (Array.isArray(part) ? part : [part.parallel, part.visit, part.branch]))
    .map(([parallel, visit, branch]) => `${parallel}[${visit}.${branch}]`)
    .join("/");
}

function roundAround(story: ExecutionTimeline, scope: ScopePart[]): string {
  for (let depth = scope.length; depth >= 0; depth--) {
    const loop = story.loops.get(scopeOf(scope.slice(0, depth)))?.at(-1);
    if (loop) return `${loop.node} ${loop.round}`;
  }
  return "";
}

function waits(story: ExecutionTimeline, event: JournalEvent): void {
  const at = known(story, event);
  if (at && !isOver(at.status)) go(story, at, event.at, "waiting");
}

export function isOver(status: StepStatus): boolean {
  return status !== "pending" && status !== "running" && status !== "waiting";
}

function opened(story: ExecutionTimeline, event: JournalEvent, status: StepStatus): StepRecord {
  const step = String(event.step);
  const node = String(event.node ?? step);
  const edge = typeof event.edge === "string" ? event.edge : "";
  if (edge) story.taken.set(edge, (story.taken.get(edge) ?? 0) + 1);
  const again = story.steps.get(step);
  if (again) {
    // A retry or a resumption opens it once more.
    turn(story, again, status);
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
    places: [],
    round: roundAround(story, scope),
  };
  story.steps.set(step, at);
  story.order.push(step);
  const about = nodeOf(story, node);
  about.steps.push(step);
  count(about, status, 1);
  lead(story, at, 1);
  return at;
}

function known(story: ExecutionTimeline, event: JournalEvent): StepRecord | undefined {
  return story.steps.get(String(event.step));
}

function nodeOf(story: ExecutionTimeline, node: string): NodeRecord {
  let found = story.nodes.get(node);
  if (!found) {
    found = untouched(node);
    story.nodes.set(node, found);
  }
  return found;
}

function go(story: ExecutionTimeline, at: StepRecord, when: number, status: StepStatus): void {
  if (at.status === status && at.spans.at(-1)?.to === null) return;
  endSpan(at, when, at.spans.at(-1)?.status ?? at.status);
  turn(story, at, status);
  at.spans.push({ from: when, to: null, status });
}

function close(story: ExecutionTimeline, at: StepRecord, when: number, status: StepStatus): void {
  endSpan(at, when, status);
  turn(story, at, status);
}

function turn(story: ExecutionTimeline, at: StepRecord, status: StepStatus): void {
  const about = nodeOf(story, at.node);
  lead(story, at, -1);
  count(about, at.status, -1);
  at.status = status;
  count(about, status, 1);
  lead(story, at, 1);
}

/** What is open counts on the arrow that led to it. */
function lead(story: ExecutionTimeline, at: StepRecord, by: number): void {
  if (at.edge && !isOver(at.status)) story.active.set(at.edge, (story.active.get(at.edge) ?? 0) + by);
}

function endSpan(at: StepRecord, when: number, status: StepStatus): void {
  const last = at.spans.at(-1);
  if (!last || last.to !== null) return;
  last.to = when;
  // A wait stays a wait in the picture; what ran shows how it ended.
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

function add(at: StepRecord, event: JournalEvent): void {
  const usage = event.usage as Record<string, number> | undefined;
  if (!usage) return;
  at.usage ??= {};
  for (const [name, value] of Object.entries(usage)) {
    if (typeof value === "number") at.usage[name] = (at.usage[name] ?? 0) + value;
  }
}

function writesOf(event: JournalEvent): Write[] {
  const writes = (event.writes as [Write["path"], string, Json, boolean][] | undefined) ?? [];
  // What is the result itself is not told twice.
  return writes.map(([path, reduce, value, whole]) => ({
    path,
    reduce,
    value: whole ? (event.result as Json) : value,
  }));
}

/** How a node looks: what is open outweighs what is over. */
export function lookOf(about: NodeRecord | undefined): StepStatus | null {
  if (!about || about.steps.length === 0) return null;
  if (about.waiting > 0) return "waiting";
  if (about.open > 0) return "running";
  return about.latest;
}

/** A node to which nothing has happened yet. */
export const untouched = (node: string): NodeRecord => ({
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
