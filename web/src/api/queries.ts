/** Queries and mutations of the API that several features use. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ApiError, apiRequest, apiResponse, ifMatch, query } from "./http";
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
  NamedVersion,
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
    queryFn: ({ signal }) => apiRequest<Me>("/api/me", { signal }),
    staleTime: 60_000,
  });

export const loginOptions = () =>
  queryOptions({
    queryKey: ["ways"],
    queryFn: ({ signal }) => apiRequest<Schemas["LoginOptions"]>("/api/login", { signal }),
    staleTime: 60_000,
  });

export const login = (key: string) => apiRequest<Me>("/api/login", { body: { key } });
export const logout = () => apiRequest<void>("/api/logout", { method: "POST" });

export const workflow = (id: string) =>
  queryOptions({
    queryKey: ["workflow", id],
    queryFn: ({ signal }) => apiResponse<WorkflowDetail>(workflowPath(id), { signal }),
  });

/** A definition in the API's form: the document, with its graph beside it. */
export interface DefinitionBody {
  document: Definition;
  graph?: DefinitionGraph | null;
}

/** Add the graph to the document, and the lists that the document omits when they are empty. */
export function definitionIn({ document, graph }: DefinitionBody): Definition {
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
    queryFn: ({ signal }) =>
      apiRequest<DefinitionBody>(`${workflowPath(id)}?dialect=native`, { signal }).then(definitionIn),
  });

/** All revisions, newest first, without their documents. */
export const revisions = (id: string) =>
  queryOptions({
    queryKey: ["revisions", id],
    queryFn: ({ signal }) =>
      apiRequest<{ workflows: WorkflowEntry[] }>(`${workflowPath(id)}/versions`, { signal }).then(
        (response) => response.workflows,
      ),
  });

export const languageSchema = () =>
  queryOptions({
    queryKey: ["language"],
    queryFn: ({ signal }) => apiRequest<JsonObject>("/api/workflows/schema", { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

export interface ExecutionFilter {
  workflow?: string;
  status?: readonly ExecutionStatus[];
  /** All these words must occur in input, output or error; finds only ended executions. */
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
      apiRequest<{ executions: ExecutionEntry[]; next: string | null }>(
        `/api/workflows/executions${query({ ...filter, before: pageParam, limit: 50 })}`,
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    // The board stream reports changes; polling covers clients that cannot connect to it.
    refetchInterval: 30_000,
  });

export const execution = (id: string) =>
  queryOptions({
    queryKey: ["execution", id],
    queryFn: ({ signal }) => apiRequest<Execution>(executionPath(id), { signal }),
  });

export const executionAt = (id: string, seq: number) =>
  queryOptions({
    queryKey: ["execution", id, "at", seq],
    queryFn: ({ signal }) => apiRequest<Execution>(`${executionPath(id)}/state${query({ at: seq })}`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const executionDefinition = (id: string) =>
  queryOptions({
    queryKey: ["execution", id, "workflow"],
    queryFn: ({ signal }) => apiRequest<DefinitionBody>(`${executionPath(id)}/workflow`, { signal }).then(definitionIn),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Parents, children and forks. */
export const relations = (id: string) =>
  queryOptions({
    queryKey: ["execution", id, "family"],
    queryFn: ({ signal }) => apiRequest<Schemas["Relations"]>(`${executionPath(id)}/family`, { signal }),
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
  tookMs?: number;
  calls?: ToolCall[];
}

/** The model and tool calls of a step; a new `version` loads them again. */
export const callsOf = (id: string, step: string, version: number) =>
  queryOptions({
    queryKey: ["execution", id, "calls", step, version],
    queryFn: ({ signal }) =>
      apiRequest<{ calls: Call[] }>(`${executionPath(id)}/calls${query({ step })}`, { signal }).then(
        (response) => response.calls,
      ),
    placeholderData: (before) => before,
  });

export const removeExecution = (id: string) => apiRequest<void>(executionPath(id), { method: "DELETE" });

/** The inbox loads at most this many gates. */
export const INBOX_MAX = 200;

/** `everyone` lists the gates of all users, for admins. */
export const inbox = (enabled = true, everyone = false) =>
  queryOptions({
    enabled,
    queryKey: everyone ? ["inbox", "everyone"] : ["inbox"],
    queryFn: ({ signal }) =>
      apiRequest<{ gates: InboxGate[] }>(
        `/api/inbox${query({ limit: INBOX_MAX, everyone: everyone ? "true" : null })}`,
        {
          signal,
        },
      ).then((response) => response.gates),
    refetchInterval: 30_000,
  });

export const mentions = (enabled = true) =>
  queryOptions({
    enabled,
    queryKey: ["mentions"],
    queryFn: ({ signal }) => apiRequest<Schemas["MentionList"]>("/api/mentions", { signal }),
    refetchInterval: 30_000,
  });

export const delegate = (execution: string, body: { gateId: string; to: string; comment: string }) =>
  apiRequest<Execution>(`${executionPath(execution)}/delegate`, { body });

export interface GateAnswer {
  gateId: string;
  action: string;
  data?: Json;
  comment?: string;
  /** Idempotency key of the answer. */
  key?: string;
  /** Digest of what the user saw; the server rejects an answer to anything else. */
  digest?: string;
}

export const respond = (execution: string, answer: GateAnswer) =>
  apiRequest<Execution>(`${executionPath(execution)}/respond`, { body: answer, keepalive: isSmall(answer) });

/** A small answer is sent even if the page is closed meanwhile. */
export const isSmall = (answer: GateAnswer) => JSON.stringify(answer).length < 15_000;

export type Verb = "pause" | "resume" | "cancel" | "retry" | "steer";

export const control = (execution: string, verb: Verb, body: JsonObject = {}) =>
  apiRequest<Execution>(`${executionPath(execution)}/${verb}`, { body });

export const fork = (execution: string, body: { at?: number; step?: string; set?: JsonObject }) =>
  apiRequest<{ executionId: string }>(`${executionPath(execution)}/fork`, { body });

export const start = (id: string, input: Json, key: string) =>
  apiRequest<{ executionId: string }>(`${workflowPath(id)}/execute`, {
    body: { input },
    headers: { "idempotency-key": key },
  });

export const publishVersion = (id: string, body: Schemas["PublishBody"]) =>
  apiRequest<NamedVersion>(`${workflowPath(id)}/published`, { method: "PUT", body });
export const unpublishVersion = (id: string) => apiRequest<void>(`${workflowPath(id)}/published`, { method: "DELETE" });

export const saveNew = (text: string, draft = false, headers: Record<string, string> = {}) =>
  apiRequest<{ id: string; revision: number }>(`/api/workflows${draft ? "?draft=true" : ""}`, { text, headers });

export const clone = (id: string, as: string) =>
  apiRequest<{ id: string }>(`${workflowPath(id)}/clone`, { body: { id: as } });

/** `etag` is that of the version the user saw; the server rejects the deletion if the workflow has changed since. */
export const removeWorkflow = (id: string, etag: string | null) =>
  apiRequest<void>(workflowPath(id), { method: "DELETE", ...ifMatch(etag) });

/** State of the server. A server that is not ready sends the same document with status 503. */
export const ready = queryOptions({
  queryKey: ["ready"],
  queryFn: async ({ signal }): Promise<Schemas["ReadyView"]> => {
    const response = await fetch("/ready", { signal });
    if (!response.ok && response.status !== 503) throw new ApiError(response.status, {});
    return response.json();
  },
});
