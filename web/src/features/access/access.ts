/** Queries and mutations for keys, people, logins and secrets; for admins. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { apiRequest, ifMatch, query } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Key = Schemas["KeyView"];
export type NewKey = Schemas["KeyBody"];
export type Person = Schemas["PersonView"];
export type Login = Schemas["LoginView"];
export type Right = Schemas["RightView"];
export type Secret = Schemas["SecretView"];
export type OtherSecret = Schemas["OtherSecretView"];

const at = encodeURIComponent;

export const ROLES = ["viewer", "operator", "editor", "admin"] as const;

/** A searchable list of the server, page by page. */
const found = <P extends { next: string | null }>(name: string, path: string, words: string, more = {}) =>
  infiniteQueryOptions({
    queryKey: ["access", name, { words }],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<P>(`${path}${query({ ...more, search: words, after: pageParam, limit: 50 })}`, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: (before) => before,
  });

export const keys = (words: string) => found<Schemas["KeyPage"]>("keys", "/api/settings/keys", words);
export const makeKey = (key: NewKey) => apiRequest<Schemas["NewKeyView"]>("/api/settings/keys", { body: key });
export const revokeKey = (name: string) => apiRequest<void>(`/api/settings/keys/${at(name)}`, { method: "DELETE" });

export const people = (words: string) => found<Schemas["PeoplePage"]>("people", "/api/people", words);
export const logins = (words: string) =>
  found<Schemas["LoginPage"]>("logins", "/api/logins", words, { everyone: true });
export const rights = () =>
  queryOptions({
    queryKey: ["rights"],
    queryFn: ({ signal }) =>
      apiRequest<Schemas["RightsPage"]>("/api/rights", { signal }).then((response) => response.rights),
    staleTime: Number.POSITIVE_INFINITY,
  });
export const endLogin = (id: string) => apiRequest<void>(`/api/logins/${at(id)}`, { method: "DELETE" });
export const endLogins = (name: string) =>
  apiRequest<Schemas["EndedLogins"]>(`/api/logins${query({ name })}`, { method: "DELETE" });

export const secrets = (words: string) => found<Schemas["SecretPage"]>("secrets", "/api/secrets", words);
export const secretUses = (name: string) =>
  queryOptions({
    queryKey: ["access", "uses", name],
    queryFn: ({ signal }) => apiRequest<Schemas["SecretUses"]>(`/api/secrets/${at(name)}/uses`, { signal }),
  });
export const RULE_FIELDS = ["hosts", "tools", "workflows", "groups"] as const;
/** The hosts and tools that a secret may be sent to, and the workflows and groups that may use it. */
export type SecretRule = Record<(typeof RULE_FIELDS)[number], string[]>;
/** Store the rule, and the value unless it is empty. `known` is the secret as it was listed, or null for a new one.
 * Throws if the secret has changed since. */
export const setSecret = (known: Secret | null, name: string, value: string, rule: SecretRule) =>
  apiRequest<void>(`/api/secrets/${at(name)}`, {
    method: "PUT",
    body: { ...(value ? { value } : {}), ...rule },
    ...ifMatch(known?.etag ?? ""),
  });
export const deleteSecret = (known: Secret) =>
  apiRequest<void>(`/api/secrets/${at(known.name)}`, { method: "DELETE", ...ifMatch(known.etag) });

/** Split a comma-separated list into distinct names. */
export function namesIn(text: string): string[] {
  return [...new Set(text.split(",").map((one) => one.trim()))].filter(Boolean);
}

/** The name of a browser and its system, taken from the User-Agent header. */
export function browserOf(agent: string): string {
  const known = [/Edg\//, /OPR\//, /Firefox\//, /Chrome\//, /Safari\//].findIndex((one) => one.test(agent));
  const name = ["Edge", "Opera", "Firefox", "Chrome", "Safari"][known];
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(agent)?.[1]?.replace("Mac OS X", "macOS");
  return [name, system].filter(Boolean).join(", ") || agent.slice(0, 40);
}
