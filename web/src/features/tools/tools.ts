/** Queries and mutations of tools. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { fetchByNames } from "@/api/fetchByNames";
import { apiRequest, query } from "@/api/http";
import type { JsonObject, Schemas } from "@/api/views";

export type Tool = Schemas["ToolView"];
export type TriedTool = Schemas["TriedTool"];

/** Search by text and origin, sorted by origin, page by page. */
export const toolsFound = (words: string, origin: string | null) =>
  infiniteQueryOptions({
    queryKey: ["tools", { words, origin }],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["ToolPage"]>(
        `/api/tools${query({ search: words, origin, sort: "origin", after: pageParam, limit: 50 })}`,
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: 30_000,
    placeholderData: (before) => before,
  });

/** Those of the given tools that exist. */
export const toolsByName = (names: readonly string[]) =>
  queryOptions({
    queryKey: ["tools", { names }],
    queryFn: ({ signal }) => fetchByNames<Tool>("/api/tools", "tools", "name", names, signal),
    enabled: names.length > 0,
    staleTime: 30_000,
  });

export type Server = Schemas["McpServerView"];

/** The MCP servers; the request lists their tools anew. */
export const servers = () =>
  queryOptions({
    queryKey: ["tools", "of servers"],
    queryFn: ({ signal }) => apiRequest<Schemas["ToolPage"]>("/api/tools?origin=mcp&limit=1", { signal }),
    select: (page) => page.servers,
    staleTime: 30_000,
  });

export const tool = (name: string) =>
  queryOptions({
    queryKey: ["tools", "one", name],
    queryFn: ({ signal }) => apiRequest<Tool>(`/api/tools/${encodeURIComponent(name)}`, { signal }),
    staleTime: 30_000,
  });

export const tryTool = (name: string, given: JsonObject) =>
  apiRequest<TriedTool>(`/api/tools/${encodeURIComponent(name)}/try`, { body: { arguments: given } });

/** Group tools by origin, in the order of the list. */
export function byOrigin(found: readonly Tool[]): [string, Tool[]][] {
  const groups = new Map<string, Tool[]>();
  for (const one of found) {
    const group = groups.get(one.origin);
    if (group) group.push(one);
    else groups.set(one.origin, [one]);
  }
  return [...groups];
}
