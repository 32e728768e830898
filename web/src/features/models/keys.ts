/** The state of provider keys, polled while the page is open. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest } from "@/api/http";
import type { Schemas } from "@/api/views";

export type ModelKeys = Schemas["ModelKeys"];
export type KeyProvider = ModelKeys["providers"][number];
export type ProviderKey = KeyProvider["keys"][number];
type Measure = keyof ProviderKey["today"];

const LOOKS_MS = 3_000;

export const modelKeys = () =>
  queryOptions({
    queryKey: ["models", "keys"],
    queryFn: ({ signal }) => apiRequest<ModelKeys>("/api/models/keys", { signal }),
    refetchInterval: LOOKS_MS,
  });

export interface Share {
  measure: Measure;
  used: number;
  most: number;
}

/** Today's usage of a key as shares of its limits, the largest share first. */
export function shares(key: ProviderKey): Share[] {
  const found: Share[] = [];
  for (const measure of ["costUsd", "calls", "tokens"] as const) {
    const most = key.mostToday?.[measure];
    if (most !== null && most !== undefined) found.push({ measure, used: key.today[measure], most });
  }
  return found.sort((a, b) => part(b) - part(a));
}

/** The used share; 1 is all. A limit of zero counts as used up. */
export function part(share: Pick<Share, "used" | "most">): number {
  return share.most > 0 ? share.used / share.most : 1;
}
