/** Queries and mutations of memory. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { apiRequest, query } from "@/api/http";
import type { Json, Schemas } from "@/api/views";

export type Owner = Schemas["OwnerView"];
export type Value = Schemas["ValueView"];
export type Change = Schemas["ChangeView"];
export type Writer = Schemas["WriterView"];

export const SCOPES = ["user", "session", "workflow", "execution", "shared"] as const;
export type Scope = (typeof SCOPES)[number];

/** A scope, and the owner in it. */
export interface OwnerKey {
  scope: string;
  owner: string;
}

const path = (ownerKey: OwnerKey, value = "") => `/api/memory/${encodeURIComponent(ownerKey.scope)}${value}`;

export const owners = () =>
  infiniteQueryOptions({
    queryKey: ["memory"],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["OwnerPage"]>(`/api/memory${query({ after: pageParam, limit: 200 })}`, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

export const values = (ownerKey: OwnerKey, words: string, namespace: string) =>
  infiniteQueryOptions({
    queryKey: ["memory", ownerKey.scope, ownerKey.owner, words, namespace],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["ValuePage"]>(
        `${path(ownerKey)}${query({ owner: ownerKey.owner, q: words, namespace, after: pageParam, limit: 50 })}`,
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

const at = (ownerKey: OwnerKey, namespace: string, key: string) =>
  path(ownerKey, `/value${query({ owner: ownerKey.owner, namespace, key })}`);

export const remember = (ownerKey: OwnerKey, namespace: string, key: string, value: Json, ttl: number | null) =>
  apiRequest<Value>(at(ownerKey, namespace, key), { method: "PUT", body: { value, ...(ttl === null ? {} : { ttl }) } });

/** The present value of a key and the earlier ones, with authors. */
export const history = (ownerKey: OwnerKey, one: Pick<Value, "namespace" | "key">) =>
  infiniteQueryOptions({
    queryKey: ["memory", ownerKey.scope, ownerKey.owner, "history", one.namespace, one.key],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["HistoryPage"]>(
        path(
          ownerKey,
          `/history${query({ owner: ownerKey.owner, namespace: one.namespace, key: one.key, after: pageParam, limit: 50 })}`,
        ),
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

export const putBack = (ownerKey: OwnerKey, namespace: string, key: string, number: number) =>
  apiRequest<Value>(path(ownerKey, `/history${query({ owner: ownerKey.owner, namespace, key })}`), {
    method: "POST",
    body: { number },
  });

export const forget = (ownerKey: OwnerKey, namespace: string, key: string) =>
  apiRequest<void>(at(ownerKey, namespace, key), { method: "DELETE" });

export const forgetAll = (ownerKey: OwnerKey, namespace: string) =>
  apiRequest<{ forgotten: number }>(`${path(ownerKey)}${query({ owner: ownerKey.owner, namespace })}`, {
    method: "DELETE",
  });

/** Format a size, as in `1.2 kB`. */
export function bytes(count: number, language: string): string {
  const [amount, unit] = count < 1000 ? [count, "B"] : count < 1e6 ? [count / 1e3, "kB"] : [count / 1e6, "MB"];
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(amount)} ${unit}`;
}
