/** What the pages read, by key; and what they do. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ApiError, answerOf, ask, over, query } from "./http";
import type {
  Definition,
  DefinitionGraph,
  Execution,
  ExecutionEntry,
  ExecutionStatus,
  InboxGate,
  Json,
  JsonObject,
  Me,
  Schemas,
  Usage,
  WorkflowDetail,
  WorkflowEntry,
} from "./views";

const at = encodeURIComponent;
const workflowPath = (id: string) => `/api/workflows/${at(id)}`;
export const executionPath = (id: string) => `/api/workflows/executions/${at(id)}`;

export const me = () =>
  queryOptions({
    queryKey: ["me"],
    queryFn: ({ signal }) => ask<Me>("/api/me", { signal }),
    staleTime: 60_000,
  });

export const ways = () =>
  queryOptions({
    queryKey: ["ways"],
    queryFn: ({ signal }) => ask<Schemas["LoginOptions"]>("/api/login", { signal }),
    staleTime: 60_000,
  });

export const login = (key: string) => ask<Me>("/api/login", { body: { key } });
export const logout = () => ask<void>("/api/logout", { method: "POST" });

export const workflow = (id: string) =>
  queryOptions({
    queryKey: ["workflow", id],
    queryFn: ({ signal }) => answerOf<WorkflowDetail>(workflowPath(id), { signal }),
  });

/** A definition as the server sends it: the document, and its graph beside it. */
export interface SentDefinition {
  document: Definition;
  graph?: DefinitionGraph | null;
}

/** With the lists that a document leaves out where they are empty, and with its graph. */
export function definitionIn({ document, graph }: SentDefinition): Definition {
  const nodes = document.nodes ?? [];
  return {
    ...document,
    nodes,
    edges: document.edges ?? [],
    ...(graph ? { graph: { ...graph, known: nodes.map((node) => node.id) } } : {}),
  };
}

export const definition = (id: string) =>
  queryOptions({
    queryKey: ["definition", id],
    queryFn: ({ signal }) => ask<SentDefinition>(`${workflowPath(id)}?dialect=native`, { signal }).then(definitionIn),
  });

/** All of them, newest first: who saved what when, without documents. */
export const revisions = (id: string) =>
  queryOptions({
    queryKey: ["revisions", id],
    queryFn: ({ signal }) =>
      ask<{ workflows: WorkflowEntry[] }>(`${workflowPath(id)}/versions`, { signal }).then((told) => told.workflows),
  });

export const languageSchema = () =>
  queryOptions({
    queryKey: ["language"],
    queryFn: ({ signal }) => ask<JsonObject>("/api/workflows/schema", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

export interface ExecutionFilter {
  workflow?: string;
  status?: readonly ExecutionStatus[];
  /** All these words in input, output or error; finds what has ended. */
  q?: string;
  /** Unix seconds. */
  since?: number;
  until?: number;
  order?: "asc" | "desc";
  trials?: "true";
}

export const executions = (filter: ExecutionFilter = {}) =>
  infiniteQueryOptions({
    queryKey: ["executions", filter],
    queryFn: ({ pageParam, signal }) =>
      ask<{ executions: ExecutionEntry[]; next: string | null }>(
        `/api/workflows/executions${query({ ...filter, before: pageParam, limit: 50 })}`,
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    // The board tells of changes; this is for who cannot hear it.
    refetchInterval: 30_000,
  });

export const execution = (id: string) =>
  queryOptions({
    queryKey: ["execution", id],
    queryFn: ({ signal }) => ask<Execution>(executionPath(id), { signal }),
  });

export const executionAt = (id: string, seq: number) =>
  queryOptions({
    queryKey: ["execution", id, "at", seq],
    queryFn: ({ signal }) => ask<Execution>(`${executionPath(id)}/state${query({ at: seq })}`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const executionDefinition = (id: string) =>
  queryOptions({
    queryKey: ["execution", id, "workflow"],
    queryFn: ({ signal }) => ask<SentDefinition>(`${executionPath(id)}/workflow`, { signal }).then(definitionIn),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** What it comes from and what came of it. */
export const family = (id: string) =>
  queryOptions({
    queryKey: ["execution", id, "family"],
    queryFn: ({ signal }) => ask<Schemas["Relations"]>(`${executionPath(id)}/family`, { signal }),
  });

export interface ToolCall {
  tool: string;
  arguments: Json;
  done: boolean;
  result?: Json;
  error?: { code: string; message: string };
}

export interface Call extends Partial<ToolCall> {
  attempt: number;
  number: number;
  kind: "model" | "tool";
  model?: string;
  text?: string;
  usage?: Usage;
  calls?: ToolCall[];
}

/** What a step asked of models and tools; `version` moves on while it works. */
export const callsOf = (id: string, step: string, version: number) =>
  queryOptions({
    queryKey: ["execution", id, "calls", step, version],
    queryFn: ({ signal }) =>
      ask<{ calls: Call[] }>(`${executionPath(id)}/calls${query({ step })}`, { signal }).then((told) => told.calls),
    placeholderData: (before) => before,
  });

export const removeExecution = (id: string) => ask<void>(executionPath(id), { method: "DELETE" });

/** The most that an inbox shows at once. */
export const INBOX_MAX = 200;

/** `everyone`: what waits for anybody, for admins. */
export const inbox = (enabled = true, everyone = false) =>
  queryOptions({
    enabled,
    queryKey: everyone ? ["inbox", "everyone"] : ["inbox"],
    queryFn: ({ signal }) =>
      ask<{ gates: InboxGate[] }>(`/api/inbox${query({ limit: INBOX_MAX, everyone: everyone ? "true" : null })}`, {
        signal,
      }).then((told) => told.gates),
    refetchInterval: 30_000,
  });

export const delegate = (execution: string, body: { gateId: string; to: string; comment: string }) =>
  ask<Execution>(`${executionPath(execution)}/delegate`, { body });

export interface GateAnswer {
  gateId: string;
  action: string;
  data?: Json;
  comment?: string;
  /** The same answer with the same key counts once. */
  key?: string;
  /** Of what the reader saw: an answer to anything else is refused. */
  digest?: string;
}

export const respond = (execution: string, answer: GateAnswer) =>
  ask<Execution>(`${executionPath(execution)}/respond`, { body: answer });

export type Verb = "pause" | "resume" | "cancel" | "retry" | "steer";

export const control = (execution: string, verb: Verb, body: JsonObject = {}) =>
  ask<Execution>(`${executionPath(execution)}/${verb}`, { body });

export const fork = (execution: string, body: { at?: number; step?: string; set?: JsonObject }) =>
  ask<{ executionId: string }>(`${executionPath(execution)}/fork`, { body });

export const start = (id: string, input: Json, key: string) =>
  ask<{ executionId: string }>(`${workflowPath(id)}/execute`, { body: { input }, headers: { "idempotency-key": key } });

export const saveNew = (text: string, draft = false, headers: Record<string, string> = {}) =>
  ask<{ id: string; revision: number }>(`/api/workflows${draft ? "?draft=true" : ""}`, { text, headers });

export const clone = (id: string, as: string) => ask<{ id: string }>(`${workflowPath(id)}/clone`, { body: { id: as } });

/** `etag`: of what was read before; nothing is deleted where somebody else changed it since. */
export const removeWorkflow = (id: string, etag: string | null) =>
  ask<void>(workflowPath(id), { method: "DELETE", ...over(etag) });

/** How the server is. One that is not ready says why in the same words. */
export const ready = queryOptions({
  queryKey: ["ready"],
  queryFn: async ({ signal }): Promise<Schemas["ReadyView"]> => {
    const response = await fetch("/ready", { signal });
    if (!response.ok && response.status !== 503) throw new ApiError(response.status, {});
    return response.json();
  },
});
