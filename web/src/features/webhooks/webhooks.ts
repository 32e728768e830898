/** Queries and mutations of the webhooks that saved workflows declare. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { apiRequest, query } from "@/api/http";
import type { Json, Schemas } from "@/api/views";

export type Webhook = Schemas["WebhookView"];
export type Delivery = Schemas["DeliveryView"];
export type TriedWebhook = Schemas["TriedWebhookView"];

/** Search by path, workflow or event, page by page. */
export const webhooks = (words: string) =>
  infiniteQueryOptions({
    queryKey: ["webhooks", { words }],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["WebhookPage"]>(`/api/webhooks${query({ search: words, after: pageParam, limit: 50 })}`, {
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: (before) => before,
  });

const triggerOf = (one: Webhook) =>
  `/api/workflows/${encodeURIComponent(one.workflowId)}/triggers/${encodeURIComponent(one.trigger)}`;

export const deliveries = (one: Webhook) =>
  queryOptions({
    queryKey: ["webhooks", one.path, "deliveries"],
    queryFn: ({ signal }) => apiRequest<{ deliveries: Delivery[] }>(`${triggerOf(one)}/deliveries`, { signal }),
    select: (response) => response.deliveries,
  });

export const tryWebhook = (one: Webhook, data: Json) =>
  apiRequest<TriedWebhook>(`${triggerOf(one)}/try`, { body: { data } });

export const addressOf = (one: Pick<Webhook, "address">): string =>
  new URL(one.address.split("/").map(encodeURIComponent).join("/"), window.location.origin).href;

/** A curl command that calls the webhook. */
export function curlOf(one: Webhook, address: string): string {
  const url = quoted(address);
  if (!one.signed) return `curl -X POST ${url} \\\n  -H 'content-type: application/json' \\\n  -d '{"order": 12}'`;
  if (one.scheme === "github")
    return [
      `body='{"order": 12}'`,
      `signature="$(printf '%s' "$body" | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d ' ' -f 1)"`,
      `curl -X POST ${url} \\`,
      `  -H 'content-type: application/json' \\`,
      `  -H "x-hub-signature-256: sha256=$signature" -H "x-github-delivery: $(date +%s%N)" -d "$body"`,
    ].join("\n");
  return [
    `body='{"order": 12}'; id="msg_$(date +%s%N)"; at="$(date +%s)"`,
    `signature="$(printf '%s.%s.%s' "$id" "$at" "$body" |`,
    `  openssl dgst -sha256 -hmac "$SECRET" -binary | base64)"`,
    `curl -X POST ${url} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -H "webhook-id: $id" -H "webhook-timestamp: $at" \\`,
    `  -H "webhook-signature: v1,$signature" -d "$body"`,
  ].join("\n");
}

/** Quote a text for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
