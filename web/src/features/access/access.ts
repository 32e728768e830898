/** Who is let in, and what is kept secret: asked of the server, and changed. For admins. */
import { queryOptions } from "@tanstack/react-query";
import { ask, over, query } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Key = Schemas["KeyEntry"];
export type NewKey = Schemas["KeyBody"];
export type Person = Schemas["PersonEntry"];
export type Login = Schemas["LoginEntry"];
export type Right = Schemas["Right"];
export type Secret = Schemas["SecretEntry"];

const at = encodeURIComponent;

export const ROLES = ["viewer", "operator", "editor", "admin"] as const;

export const keys = () =>
  queryOptions({
    queryKey: ["access", "keys"],
    queryFn: ({ signal }) => ask<Schemas["KeyPage"]>("/api/settings/keys", { signal }).then((told) => told.keys),
  });
export const makeKey = (key: NewKey) => ask<Schemas["MadeKey"]>("/api/settings/keys", { body: key });
export const revokeKey = (name: string) => ask<void>(`/api/settings/keys/${at(name)}`, { method: "DELETE" });

export const people = () =>
  queryOptions({
    queryKey: ["access", "people"],
    queryFn: ({ signal }) => ask<Schemas["PeoplePage"]>("/api/people", { signal }).then((told) => told.people),
  });
export const rights = () =>
  queryOptions({
    queryKey: ["rights"],
    queryFn: ({ signal }) => ask<Schemas["RightsPage"]>("/api/rights", { signal }).then((told) => told.rights),
    staleTime: Number.POSITIVE_INFINITY,
  });
export const logins = () =>
  queryOptions({
    queryKey: ["access", "logins"],
    queryFn: ({ signal }) =>
      ask<Schemas["LoginPage"]>("/api/logins?everyone=true", { signal }).then((told) => told.logins),
  });
export const endLogin = (id: string) => ask<void>(`/api/logins/${at(id)}`, { method: "DELETE" });
export const endLogins = (name: string) => ask<Schemas["Ended"]>(`/api/logins${query({ name })}`, { method: "DELETE" });

export const secrets = () =>
  queryOptions({
    queryKey: ["access", "secrets"],
    queryFn: ({ signal }) => ask<Schemas["SecretPage"]>("/api/secrets", { signal }),
  });
export const secretUses = (name: string) =>
  queryOptions({
    queryKey: ["access", "secrets", name, "uses"],
    queryFn: ({ signal }) => ask<Schemas["SecretUses"]>(`/api/secrets/${at(name)}/uses`, { signal }),
  });
/** `known`: the one that is replaced, as it was listed; null: a new one. Nothing is kept over another one than that. */
export const setSecret = (known: Secret | null, name: string, value: string) =>
  ask<void>(`/api/secrets/${at(name)}`, {
    method: "PUT",
    body: { value },
    ...(known ? over(known.etag) : { headers: { "if-none-match": "*" } }),
  });
export const deleteSecret = (known: Secret) =>
  ask<void>(`/api/secrets/${at(known.name)}`, { method: "DELETE", ...over(known.etag) });

/** Names with commas between them, as they are. */
export function namesIn(text: string): string[] {
  return [...new Set(text.split(",").map((one) => one.trim()))].filter(Boolean);
}

/** A browser as people call it: the word that they know, out of what it says of itself. */
export function browserOf(agent: string): string {
  const known = [/Edg\//, /OPR\//, /Firefox\//, /Chrome\//, /Safari\//].findIndex((one) => one.test(agent));
  const name = ["Edge", "Opera", "Firefox", "Chrome", "Safari"][known];
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(agent)?.[1]?.replace("Mac OS X", "macOS");
  return [name, system].filter(Boolean).join(", ") || agent.slice(0, 40);
}
