/** Tool connections: MCP servers and OpenAPI documents that an admin connects. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, ifMatch } from "@/api/http";
import type { JsonObject, Schemas } from "@/api/views";

export type ToolConnection = Schemas["ToolConnectionView"];
export type ConnectionTest = Schemas["ToolConnectionTest"];
export type OfferedTool = Schemas["OfferedToolView"];
export type Connecting = Omit<Schemas["ConnectToolsBody"], "test">;
export type ConnectionKind = Connecting["kind"];
export type AuthType = NonNullable<Connecting["auth"]>;

export const NAME = /^(?!workflow$)[a-z][a-z0-9-]{0,29}$/;
const at = (name: string) => `/api/tool-connections/${encodeURIComponent(name)}`;

export const connections = () =>
  queryOptions({
    queryKey: ["tools", "connections"],
    queryFn: ({ signal }) => apiRequest<Schemas["ToolConnectionsView"]>("/api/tool-connections", { signal }),
    staleTime: 30_000,
  });

/** List the tools that a server or a document offers, without saving; with `call`, also call one of them. */
export const testConnection = (name: string, body: Connecting, call?: { tool: string; arguments: JsonObject }) =>
  apiRequest<ConnectionTest>(`${at(name)}/test`, { body: call ? { ...body, call } : body });

/** Save a connection. `known` is the connection as it was listed, or null for a new one. */
export const connectTools = (known: ToolConnection | null, name: string, body: Connecting, test: boolean) =>
  apiRequest<Schemas["ConnectedToolsView"]>(at(name), {
    method: "PUT",
    body: { ...body, test },
    ...ifMatch(known?.etag ?? ""),
  });

export const disconnectTools = (known: ToolConnection) =>
  apiRequest<void>(at(known.name), { method: "DELETE", ...ifMatch(known.etag) });

/** What the form holds. Empty texts are not set. */
export interface Entered {
  name: string;
  by: "address" | "command" | "text";
  url: string;
  command: string;
  document: string;
  server: string;
  hosts: string;
  auth: AuthType;
  authName: string;
  secret: string;
  key: string;
}

export const entryOf = (known: ToolConnection | null, commands: readonly string[][]): Entered => ({
  name: known?.name ?? "",
  by: known && known.command.length > 0 ? "command" : known?.kind === "openapi" && !known.url ? "text" : "address",
  url: known?.url ?? "",
  command: (known && known.command.length > 0 ? known.command : (commands[0] ?? [])).join("\n"),
  document: "",
  server: known?.server ?? "",
  hosts: known?.hosts.join(", ") ?? "",
  auth: known?.auth ?? "none",
  authName: known?.authName ?? "",
  secret: known?.secret ?? "",
  key: "",
});

export const hasKey = (auth: AuthType) => auth === "bearer" || auth === "header" || auth === "query";

/** The request of a form. A command has one argument in each line. */
export function requestOf(
  kind: ConnectionKind,
  entered: Entered,
  chosen: { tools: readonly string[]; requiresApproval: readonly string[] },
): Connecting {
  const { by, auth } = entered;
  return {
    kind,
    url: by === "address" ? entered.url : "",
    command: by === "command" ? entered.command.split("\n").filter((line) => line.trim() !== "") : [],
    document: by === "text" ? entered.document : "",
    server: kind === "openapi" ? entered.server : "",
    hosts: kind === "openapi" ? entered.hosts.split(/[\s,]+/).filter(Boolean) : [],
    tools: [...chosen.tools],
    requiresApproval: [...chosen.requiresApproval],
    timeoutS: 60,
    auth: by === "command" ? "none" : auth,
    authName: auth === "header" || auth === "query" || auth === "secret" ? entered.authName : "",
    secret: auth === "secret" ? entered.secret : "",
    ...(hasKey(auth) && entered.key ? { key: entered.key } : {}),
  };
}

/** Whether a pattern of a connection matches the name of a tool. `*` stands for any text. */
export function matches(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => {
    const escaped = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(`^${escaped.join(".*")}$`, "s").test(name);
  });
}
