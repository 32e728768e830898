/** How the keys of models stand, asked of the server again and again while somebody looks. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Paying = Schemas["ModelKeys"];
export type PayingProvider = Paying["providers"][number];
export type PayingKey = PayingProvider["keys"][number];
type Measure = keyof PayingKey["today"];

const LOOKS_MS = 3_000;

export const paying = () =>
  queryOptions({
    queryKey: ["models", "keys"],
    queryFn: ({ signal }) => apiRequest<Paying>("/api/models/keys", { signal }),
    refetchInterval: LOOKS_MS,
  });

export interface Share {
  measure: Measure;
  used: number;
  most: number;
}

/** What a key paid for today of what it may, the nearest to its end first. */
export function shares(key: PayingKey): Share[] {
  const found: Share[] = [];
  for (const measure of ["costUsd", "calls", "tokens"] as const) {
    const most = key.mostToday?.[measure];
    if (most !== null && most !== undefined) found.push({ measure, used: key.today[measure], most });
  }
  return found.sort((a, b) => part(b) - part(a));
}

/** How much of it is used: 1 is all. What may pay for nothing is used up. */
export function part(share: Pick<Share, "used" | "most">): number {
  return share.most > 0 ? share.used / share.most : 1;
}
