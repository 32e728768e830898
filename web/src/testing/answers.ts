/** Minimal responses of the server. A test overrides the fields that matter to it. */
import type { CatalogueEntry, Execution, ExecutionEntry, Gate, InboxGate, Schemas } from "@/api/views";
import type { AnswerOf } from "./server";

/** The time of everything, in Unix seconds. */
export const AT = 1_700_000_000;

export const READY: AnswerOf<"get", "/ready"> = {
  status: "ready",
  version: "0",
  stopping: false,
  store: true,
  writable: true,
  room: true,
  leader: "here",
  keeper: "here",
  model: "configured",
};
export const local: AnswerOf<"get", "/api/me"> = {
  name: "local",
  role: "admin",
  groups: [],
  entrance: "local",
  expiresAt: null,
};

/** A caller who logged in with a key. */
export const keyed = (
  name: string,
  role: Schemas["CallerView"]["role"],
  ...groups: string[]
): Schemas["CallerView"] => ({
  name,
  role,
  groups,
  entrance: "login",
  expiresAt: AT + 3_600,
});

export const noTools: AnswerOf<"get", "/api/tools"> = { tools: [], servers: [], origins: {}, next: null };

export const noModels: AnswerOf<"get", "/api/models"> = {
  default: null,
  defaultFrom: null,
  defaultEtag: "",
  forEveryAgent: false,
  models: [],
  prices: { name: "genai-prices", version: "1", installed: "1" },
  providers: [],
};

export const setting = (name: string, value: unknown, more: Partial<Schemas["SettingView"]> = {}) => ({
  name,
  value,
  source: "default",
  effect: "restart" as const,
  fixedBy: "",
  entered: null,
  changedAt: 0,
  changedBy: "",
  etag: "",
  ...more,
});

export const entry = (executionId: string, more: Partial<ExecutionEntry> = {}) => ({
  executionId,
  workflowId: "letter",
  revision: 1,
  status: "completed" as const,
  startedAt: AT,
  startedBy: null,
  updatedAt: AT,
  parent: null,
  sessionId: null,
  scripted: false,
  waitingFor: [],
  ...more,
});

export const workflowEntry = (id: string, more: Partial<CatalogueEntry> = {}) => ({
  id,
  revision: 1,
  name: id,
  names: null,
  version: null,
  dialect: "native",
  createdAt: AT,
  author: "local",
  digest: "d1",
  enabled: true,
  builtIn: false,
  description: null,
  tags: [],
  published: null,
  label: null,
  folder: "",
  etag: '"1"',
  ...more,
  lastExecution: null,
});

export const gate = (gateId: string, more: Partial<Gate> = {}): Gate => ({
  gateId,
  nodeId: gateId,
  message: "Send it?",
  options: [{ value: "approve" }, { value: "again" }],
  form: null,
  shown: {},
  editable: [],
  values: {},
  digest: "digest-1",
  approvers: null,
  about: null,
  step: gateId,
  item: null,
  round: null,
  visit: 1,
  openedAt: AT,
  deadline: null,
  level: 0,
  votes: [],
  delegated: {},
  ...more,
});

/** A gate as the inbox lists it. */
export const listed = (execution: string, one: Gate, more: Partial<InboxGate> = {}) => ({
  executionId: execution,
  inside: null,
  workflowId: "letter",
  gateId: one.gateId,
  nodeId: one.nodeId,
  nodeName: one.nodeName ?? null,
  message: one.message,
  messages: one.messages ?? null,
  about: String(one.about),
  item: one.item === null ? null : String(one.item),
  round: one.round,
  openedAt: one.openedAt,
  deadline: one.deadline,
  digest: one.digest,
  scripted: false,
  users: one.approvers?.users ?? [],
  groups: one.approvers?.groups ?? [],
  cursor: `${execution}/${one.gateId}`,
  ...more,
});

type Standing = Partial<Pick<Execution, "status" | "waiting" | "answers" | "state">>;

export const execution = (executionId: string, more: Standing = {}) => ({
  executionId,
  workflowId: "letter",
  status: "waiting" as const,
  seq: 3,
  input: {},
  output: null,
  currentNodes: [],
  state: {},
  path: [],
  steps: 1,
  awaiting: [],
  timers: [],
  errors: [],
  observability: "standard" as const,
  version: null,
  trial: null,
  pausedBefore: null,
  phase: null,
  compensation: null,
  model: null,
  trigger: null,
  waitingFor: [],
  progress: [],
  warnings: [],
  usage: {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: 0,
    modelCalls: 0,
    toolCalls: 0,
  },
  sessionId: null,
  scripted: false,
  startedAt: AT,
  durationMs: 0,
  ...more,
  // A gate as the OpenAPI document describes it: it may have fields that no page uses.
  waiting: (more.waiting ?? []).map((one) => ({
    ...one,
    nodeName: one.nodeName ?? null,
    messages: one.messages ?? null,
    about: String(one.about),
    item: one.item === null ? null : String(one.item),
    votes: one.votes.map((vote) => ({ ...vote, data: vote.data ?? null })),
  })),
  answers: (more.answers ?? []).map((one) => ({ ...one, comment: "", data: null, changes: [], digest: "" })),
});
