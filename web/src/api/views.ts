/** Types of the server's responses, as far as the pages use them. */
import type { Problem } from "./http";
import type { components } from "./schema";

/** Schemas by their names in the OpenAPI document. */
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
  /** By language, if the document has more than one. */
  names: Record<string, string> | null;
  version: string | null;
  dialect: string;
  /** Null for built-in workflows. */
  createdAt: number | null;
  author: string;
  digest: string;
  enabled: boolean;
  /** Built-in workflows can be run and cloned, but not changed. */
  builtIn: boolean;
  description: Text | null;
  tags: string[];
  /** The version that runs by id; null: none is published, and the newest revision runs. */
  published: NamedVersion | null;
  /** The name of this revision. */
  label: NamedVersion | null;
  /** Path of the folder; empty: none. */
  folder: string;
}

export type NamedVersion = Schemas["NamedVersionView"];

/** An entry of the catalogue, with its latest execution. */
export interface CatalogueEntry extends WorkflowEntry {
  /** ETag of the listed version; sent with a deletion, which then fails if the workflow has changed. */
  etag: string;
  lastExecution?: ExecutionEntry | null;
}

export interface WorkflowDetail extends WorkflowEntry {
  document: JsonObject;
  text: string;
  problems: Problem[];
}

/** The server's analysis of the graph. `known` lists the nodes it covers. */
export type DefinitionGraph = Schemas["GraphView"] & { known?: readonly string[] };

/** A workflow in the native dialect, as far as the graph needs it. */
export interface Definition {
  id: string;
  name?: Text;
  description?: Text;
  input?: JsonObject;
  nodes: DefinitionNode[];
  edges: DefinitionEdge[];
  /** Not part of the document: the server sends it separately. */
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
  startedBy: string | null;
  updatedAt: number;
  parent: string | null;
  sessionId: string | null;
  /** The execution used the scripted model. */
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
  /** By language, if the workflow has several. */
  labels?: { [language: string]: string };
  [key: string]: Json | undefined;
}

export interface Gate {
  /** The child execution that opened the gate, if it is not this one. */
  executionId?: string;
  gateId: string;
  nodeId: string;
  nodeName?: Text | null;
  message: string;
  /** By language, if the workflow has several. */
  messages?: { [language: string]: string } | null;
  options: GateOption[];
  form: JsonObject | null;
  shown: Json;
  editable: string[];
  /** The present values of the editable fields. */
  values: JsonObject;
  /** Identifies the question and the shown data; an answer sends it back. */
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

/** A gate in the inbox; the execution has the complete gate. */
export interface InboxGate {
  executionId: string;
  /** The child execution that opened the gate, if it is not this one. */
  inside: string | null;
  workflowId: string;
  gateId: string;
  nodeId: string;
  nodeName?: Text | null;
  message: string;
  /** By language, if the workflow has several. */
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
  /** The execution used the scripted model: its agents' output is not real. */
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
  /** How its gates were closed, oldest first. `cause` is an answer or a deadline. */
  answers: { nodeId: string; step: string; action: string; by: string; cause: string; at: number }[];
  errors: Failure[];
  /** The limit that stopped the execution, with a value that would let it continue. */
  limit?: Schemas["LimitView"] | null;
  warnings: Failure[];
  usage: Usage;
  sessionId: string | null;
  trigger: JsonObject | null;
  startedAt: number;
  durationMs: number;
  artifacts: { name: string; mediaType?: string; size?: number }[];
}

/** An event of the journal; `seq.n` is its position. */
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

/** The current user. */
export interface Me {
  name: string;
  role: "viewer" | "operator" | "editor" | "admin";
  groups: string[];
  entrance: string;
}
