/** What the pages read, by key; and what they do. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answerOf, ask, query } from "./http";
import type {
  Definition,
  Execution,
  ExecutionEntry,
  ExecutionStatus,
  InboxGate,
  Json,
  JsonObject,
  Me,
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

export const login = (key: string) => ask<Me>("/api/login", { body: { key } });
export const logout = () => ask<void>("/api/logout", { method: "POST" });

export const workflows = () =>
  queryOptions({
    queryKey: ["workflows"],
    queryFn: ({ signal }) => ask<{ workflows: WorkflowEntry[] }>("/api/workflows?disabled=true", { signal }),
    select: (page) => page.workflows,
  });

export const workflow = (id: string) =>
  queryOptions({
    queryKey: ["workflow", id],
    queryFn: ({ signal }) => answerOf<WorkflowDetail>(workflowPath(id), { signal }),
  });

export const definition = (id: string) =>
  queryOptions({
    queryKey: ["definition", id],
    queryFn: ({ signal }) =>
      ask<{ document: Definition }>(`${workflowPath(id)}?dialect=native`, { signal }).then((told) => told.document),
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
    refetchInterval: 5_000,
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
    queryFn: ({ signal }) => ask<{ document: Definition }>(`${executionPath(id)}/workflow`, { signal }),
    select: (told) => told.document,
    staleTime: Number.POSITIVE_INFINITY,
  });

export const inbox = (enabled = true) =>
  queryOptions({
    enabled,
    queryKey: ["inbox"],
    queryFn: ({ signal }) => ask<{ gates: InboxGate[] }>("/api/inbox", { signal }).then((told) => told.gates),
    refetchInterval: 10_000,
  });

export interface GateAnswer {
  gateId: string;
  action: string;
  data?: Json;
  comment?: string;
}

export const respond = (execution: string, answer: GateAnswer) =>
  ask<Execution>(`${executionPath(execution)}/respond`, { body: answer });

export type Verb = "pause" | "resume" | "cancel" | "retry";

export const control = (execution: string, verb: Verb, body: JsonObject = {}) =>
  ask<Execution>(`${executionPath(execution)}/${verb}`, { body });

export const fork = (execution: string, body: { at?: number; step?: string; set?: JsonObject }) =>
  ask<{ executionId: string }>(`${executionPath(execution)}/fork`, { body });

export const start = (id: string, input: Json, key: string) =>
  ask<{ executionId: string }>(`${workflowPath(id)}/execute`, { body: { input }, headers: { "idempotency-key": key } });

export const saveNew = (text: string, draft = false) =>
  ask<{ id: string; revision: number }>(`/api/workflows${draft ? "?draft=true" : ""}`, { text });

export const clone = (id: string, as: string) => ask<{ id: string }>(`${workflowPath(id)}/clone`, { body: { id: as } });

export const removeWorkflow = (id: string) => ask<void>(workflowPath(id), { method: "DELETE" });
