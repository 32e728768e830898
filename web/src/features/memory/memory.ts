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
export interface Place {
  scope: string;
  owner: string;
}

const path = (place: Place, value = "") => `/api/memory/${encodeURIComponent(place.scope)}${value}`;

export const owners = () =>
  infiniteQueryOptions({
    queryKey: ["memory"],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["OwnerPage"]>(`/api/memory${query({ after: pageParam, limit: 200 })}`, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

export const values = (place: Place, words: string, namespace: string) =>
  infiniteQueryOptions({
    queryKey: ["memory", place.scope, place.owner, words, namespace],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["ValuePage"]>(
        `${path(place)}${query({ owner: place.owner, q: words, namespace, after: pageParam, limit: 50 })}`,
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

const at = (place: Place, namespace: string, key: string) =>
  path(place, `/value${query({ owner: place.owner, namespace, key })}`);

export const remember = (place: Place, namespace: string, key: string, value: Json, ttl: number | null) =>
  apiRequest<Value>(at(place, namespace, key), { method: "PUT", body: { value, ...(ttl === null ? {} : { ttl }) } });

/** The present value of a key and the earlier ones, with authors. */
export const history = (place: Place, one: Pick<Value, "namespace" | "key">) =>
  infiniteQueryOptions({
    queryKey: ["memory", place.scope, place.owner, "history", one.namespace, one.key],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["HistoryPage"]>(
        path(
          place,
          `/history${query({ owner: place.owner, namespace: one.namespace, key: one.key, after: pageParam, limit: 50 })}`,
        ),
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

export const putBack = (place: Place, namespace: string, key: string, number: number) =>
  apiRequest<Value>(path(place, `/history${query({ owner: place.owner, namespace, key })}`), {
    method: "POST",
    body: { number },
  });

export const forget = (place: Place, namespace: string, key: string) =>
  apiRequest<void>(at(place, namespace, key), { method: "DELETE" });

export const forgetAll = (place: Place, namespace: string) =>
  apiRequest<{ forgotten: number }>(`${path(place)}${query({ owner: place.owner, namespace })}`, { method: "DELETE" });

/** Format a size, as in `1.2 kB`. */
export function bytes(count: number, language: string): string {
  const [amount, unit] = count < 1000 ? [count, "B"] : count < 1e6 ? [count / 1e3, "kB"] : [count / 1e6, "MB"];
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(amount)} ${unit}`;
}
