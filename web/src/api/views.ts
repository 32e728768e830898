/** What the server answers, as far as the pages use it. */
import type { Problem } from "./http";
import type { components } from "./schema";

/** By their names in the server's OpenAPI document. */
export type Schemas = components["schemas"];

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
export type Text = string | { [language: string]: string };

export type ExecutionStatus =
  | "pending"
  | "running"
  | "stopped"
  | "waiting"
  | "paused"
  | "interrupted"
  | "completed"
  | "failed"
  | "cancelled";

export interface WorkflowEntry {
  id: string;
  revision: number;
  name: string;
  /** By language, where the document has more than one. */
  names: Record<string, string> | null;
  version: string | null;
  dialect: string;
  /** Null where it ships with the product. */
  createdAt: number | null;
  author: string;
  digest: string;
  enabled: boolean;
  /** Ships with the product: to be run and cloned, not changed. */
  builtIn: boolean;
  description: Text | null;
  tags: string[];
}

/** In the list of all: with the execution that began last. */
export interface CatalogueEntry extends WorkflowEntry {
  /** Of what is listed: who deletes it deletes that, and nothing that was saved since. */
  etag: string;
  lastExecution?: ExecutionEntry | null;
}

export interface WorkflowDetail extends WorkflowEntry {
  document: JsonObject;
  text: string;
  problems: Problem[];
}

/** What the server finds in the graph of a workflow. `known`: the nodes that it has seen. */
export type DefinitionGraph = Schemas["GraphView"] & { known?: readonly string[] };

/** A workflow in the native dialect, as far as a picture needs it. */
export interface Definition {
  id: string;
  name?: Text;
  description?: Text;
  input?: JsonObject;
  nodes: DefinitionNode[];
  edges: DefinitionEdge[];
  /** Not part of the document: the server sends it beside. */
  graph?: DefinitionGraph;
  [key: string]: unknown;
}

export interface DefinitionNode {
  id: string;
  type: string;
  name?: Text;
  position?: { x: number; y: number };
  config?: JsonObject;
  [key: string]: unknown;
}

export interface DefinitionEdge {
  id?: string;
  source: string;
  target: string;
  condition?: JsonObject;
  [key: string]: unknown;
}

export interface ExecutionEntry {
  executionId: string;
  workflowId: string;
  revision: number | null;
  status: ExecutionStatus;
  startedAt: number;
  updatedAt: number;
  parent: string | null;
  sessionId: string | null;
  /** The scripted model answers in it. */
  scripted: boolean;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  costUsd: number | null;
  modelCalls: number;
  toolCalls: number;
}

export interface Failure {
  code: string;
  message: string;
  hint?: string;
  nodeId?: string | null;
  details?: Json;
}

export interface GateOption {
  value: string;
  label?: string;
  /** By language, where its workflow says it in several. */
  labels?: { [language: string]: string };
  [key: string]: Json | undefined;
}

export interface Gate {
  /** The sub-workflow that asks, where it is another one. */
  executionId?: string;
  gateId: string;
  nodeId: string;
  nodeName?: Text | null;
  message: string;
  /** By language, where its workflow says it in several. */
  messages?: { [language: string]: string } | null;
  options: GateOption[];
  form: JsonObject | null;
  shown: Json;
  editable: string[];
  /** The present values of the editable fields. */
  values: JsonObject;
  /** Names what is asked and shown: an answer sends it back. */
  digest: string;
  approvers: { quorum: number; rejectQuorum: number; groups?: string[]; users?: string[]; delegable: boolean } | null;
  about: Json;
  step: string;
  item: Json;
  round: number | null;
  visit: number;
  openedAt: number;
  deadline: number | null;
  level: number;
  votes: { by: string; action: string; comment: string; data?: Json }[];
  delegated: Record<string, string>;
}

/** A gate in a list; the whole gate stands in its execution. */
export interface InboxGate {
  executionId: string;
  /** The sub-workflow that asks, where it is another one. */
  inside: string | null;
  workflowId: string;
  gateId: string;
  nodeId: string;
  nodeName?: Text | null;
  message: string;
  /** By language, where its workflow says it in several. */
  messages?: { [language: string]: string } | null;
  item: string | null;
  round: number | null;
  openedAt: number;
  deadline: number | null;
  users: string[];
  groups: string[];
  cursor: string;
}

export interface Execution {
  executionId: string;
  workflowId: string;
  version: string | null;
  status: ExecutionStatus;
  /** The scripted model answers in it: what its agents say is made up. */
  scripted: boolean;
  phase: string | null;
  model: string | null;
  seq: number;
  input: Json;
  output: Json;
  currentNodes: string[];
  state: JsonObject;
  path: string[];
  steps: number;
  waiting: Gate[];
  awaiting: { nodeId: string; event: Json }[];
  waitingFor: Schemas["NeededWorker"][];
  timers: Schemas["TimerView"][];
  /** How its gates were closed, oldest first; `cause`: an answer, or that their time was up. */
  answers: { nodeId: string; step: string; action: string; by: string; cause: string; at: number }[];
  errors: Failure[];
  /** What stopped it, and what would be enough to go on. */
  limit?: Schemas["LimitView"] | null;
  warnings: Failure[];
  usage: Usage;
  sessionId: string | null;
  trigger: JsonObject | null;
  startedAt: number;
  durationMs: number;
  artifacts: { name: string; mediaType?: string; size?: number }[];
}

/** A fact of the journal: its place is `seq.n`. */
export interface JournalEvent {
  seq: number;
  n: number;
  at: number;
  kind: string;
  step?: string;
  node?: string;
  [key: string]: unknown;
}

export interface EventPage {
  events: JournalEvent[];
  last: string | null;
  status: ExecutionStatus;
}

export const ENDED: ReadonlySet<ExecutionStatus> = new Set(["completed", "failed", "cancelled"]);

/** Who looks. */
export interface Me {
  name: string;
  role: "viewer" | "operator" | "editor" | "admin";
  groups: string[];
  entrance: string;
}
