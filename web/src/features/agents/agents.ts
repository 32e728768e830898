/** Queries and mutations of saved agents. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { fetchByNames } from "@/api/fetchByNames";
import { type ApiResponse, apiRequest, apiResponse, ifMatch, query } from "@/api/http";
import { fetchAllPages } from "@/api/pages";
import type { JsonObject, Schemas } from "@/api/views";

export type Agent = Schemas["AgentView"];
export type StartedTurn = Schemas["StartedTurn"];
export type Use = Schemas["AgentUse"];

const path = (name: string) => `/api/agents/${encodeURIComponent(name)}`;

/** Search by name or description, page by page. */
export const agentsFound = (words: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", { words }],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["AgentPage"]>(`/api/agents${query({ search: words, after: pageParam, limit: 50 })}`, {
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next ?? null,
    placeholderData: (before) => before,
  });

export const agentsByName = (names: readonly string[]) =>
  queryOptions({
    queryKey: ["agents", { names }],
    queryFn: ({ signal }) => fetchByNames<Agent>("/api/agents", "agents", "name", names, signal),
    enabled: names.length > 0,
  });

export const agent = (name: string) =>
  queryOptions({
    queryKey: ["agents", name],
    queryFn: ({ signal }) => apiResponse<Agent>(path(name), { signal }),
  });

export const versions = (name: string) =>
  queryOptions({
    queryKey: ["agents", name, "versions"],
    queryFn: ({ signal }) => fetchAllPages<Agent>(`${path(name)}/versions`, "agents", {}, signal),
  });

export const uses = (name: string) =>
  queryOptions({
    queryKey: ["agents", name, "uses"],
    queryFn: ({ signal }) => apiRequest<{ workflows: Use[] }>(`${path(name)}/uses`, { signal }),
    select: (response) => response.workflows,
  });

/** Create an agent. Throws if the name is taken. */
export const createAgent = (name: string, agent: JsonObject) =>
  apiRequest<Agent>("/api/agents", { body: { name, agent: agent }, headers: { "if-none-match": "*" } });

/** Save changes to the agent that was loaded. Throws if it has changed since. */
export const saveAgent = (read: ApiResponse<Agent>, agent: JsonObject) =>
  apiResponse<Agent>(path(read.value.name), {
    method: "PUT",
    body: { agent: agent },
    ...ifMatch(read.etag),
  });

export const deleteAgent = (read: ApiResponse<Agent>) =>
  apiRequest<void>(path(read.value.name), { method: "DELETE", ...ifMatch(read.etag) });

/** Send a message. `agent` is the unsaved agent to use, or null for the saved one; `sessionId` is that of the previous
 * answer. */
export const sendToAgent = (
  name: string,
  body: { message: string; agent: JsonObject | null; sessionId: string | null },
) => apiRequest<StartedTurn>(`${path(name)}/try`, { body });

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export const stringsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
