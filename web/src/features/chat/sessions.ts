/** Queries and mutations of the chat. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { fetchByNames } from "@/api/fetchByNames";
import { ApiError, apiRequest, errorOf, ifMatch, query } from "@/api/http";
import type { Schemas } from "@/api/views";

export type ChatWorkflow = Pick<
  Schemas["ChatWorkflowView"],
  "id" | "name" | "description" | "conversational" | "field" | "files"
>;
export type Session = Schemas["ConversationEntry"];

/** Search chat workflows by id, name, description or tag, page by page. */
export const chatWorkflowsFound = (text: string) =>
  infiniteQueryOptions({
    queryKey: ["speakers", { words: text }],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["ChatWorkflowPage"]>(
        `/api/chat/workflows${query({ search: text, after: pageParam, limit: 50 })}`,
        {
          signal,
        },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: 30_000,
    placeholderData: (before) => before,
  });

/** Those of the given workflows that offer a chat. */
export const chatWorkflowsById = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ["speakers", { ids }],
    queryFn: ({ signal }) => fetchByNames<ChatWorkflow>("/api/chat/workflows", "workflows", "id", ids, signal),
    enabled: ids.length > 0,
    staleTime: 30_000,
  });

/** Keyed under `executions`, so that the board refetches it. */
export const sessions = (text: string) =>
  infiniteQueryOptions({
    queryKey: ["executions", "talks", text],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<{ sessions: Session[]; next: string | null }>(
        `/api/sessions${query({ q: text, before: pageParam, limit: 30 })}`,
        {
          signal,
        },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

const TURNS = 20;

export const turns = (session: string, also: { trials?: "true" } = {}) =>
  infiniteQueryOptions({
    queryKey: ["executions", "turns", session],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["ExecutionPage"]>(
        `/api/workflows/executions${query({ session, before: pageParam, limit: TURNS, ...also })}`,
        {
          signal,
        },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

export interface NewMessage {
  workflow: ChatWorkflow;
  session: string;
  text: string;
  files: readonly File[];
  /** Idempotency key of the message. */
  key: string;
}

/** Start a turn, which is an execution of its own. */
export async function sendMessage({
  workflow,
  session,
  text,
  files,
  key,
}: NewMessage): Promise<{ executionId: string }> {
  const path = `/api/workflows/${encodeURIComponent(workflow.id)}/execute`;
  const input = { [workflow.field]: text };
  const headers = { "idempotency-key": key };
  if (files.length === 0) return apiRequest(path, { body: { input, sessionId: session }, headers });
  const form = new FormData();
  form.set("input", JSON.stringify(input));
  form.set("sessionId", session);
  for (const file of files) form.append(workflow.files[0] ?? "files", file);
  let response: Response;
  try {
    response = await fetch(`${path}/files`, { method: "POST", body: form, headers, credentials: "same-origin" });
  } catch {
    throw new ApiError(0, { detail: "The server does not answer.", code: "unreachable" });
  }
  if (!response.ok) throw await errorOf(response);
  return (await response.json()) as { executionId: string };
}

const at = (session: string) => `/api/sessions/${encodeURIComponent(session)}`;

export const renameSession = (talk: Session, title: string) =>
  apiRequest<Session>(at(talk.sessionId), { method: "PATCH", body: { title }, ...ifMatch(talk.etag) });

export const removeSession = (session: string) => apiRequest<void>(at(session), { method: "DELETE" });
