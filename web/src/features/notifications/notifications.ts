/** Queries and mutations of notifications. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { apiRequest, ifMatch, query } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Notice = Schemas["NoticeView"];
export type Address = Schemas["AddressView"];

export const notifications = (state: Notice["state"] | "") =>
  infiniteQueryOptions({
    queryKey: ["notifications", state],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["NoticePage"]>(`/api/notifications${query({ state, after: pageParam })}`, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: 10_000,
  });

export const sendAgain = (id: string) =>
  apiRequest<Notice>(`/api/notifications/${id.split("/").map(encodeURIComponent).join("/")}/retry`, { method: "POST" });

export const FORMATS = ["slack", "teams", "mail", "json"] as const;
export const EVENTS = ["gate", "completed", "failed", "cancelled", "interrupted"] as const;

/** The fields of a destination; lists are texts with one entry per line. */
export interface DestinationDraft {
  name: string;
  format: (typeof FORMATS)[number];
  url: string;
  key: string;
  events: readonly (typeof EVENTS)[number][];
  workflows: string;
  recipients: string;
  answerLinks: boolean;
  language: string;
}

export function draftOfDestination(known: Address | null): DestinationDraft {
  return {
    name: known?.name ?? "",
    format: known?.format ?? "slack",
    url: "",
    key: "",
    events: known ? EVENTS.filter((event) => known.events.includes(event)) : ["gate", "failed"],
    workflows: (known?.workflows ?? ["*"]).join("\n"),
    recipients: (known?.mailTo ?? []).map((one) => `${one.name} <${one.address}>`).join("\n"),
    answerLinks: known?.answerLinks ?? false,
    language: known?.language ?? "",
  };
}

const linesOf = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** A line `name <address>`; of an address alone, the name is the address. */
function recipientOf(line: string) {
  const [, name = "", address = line] = /^(.*?)\s*<(.+)>$/.exec(line) ?? [];
  return { name: name || address, address };
}

export function destinationBody(draft: DestinationDraft) {
  const isMail = draft.format === "mail";
  return {
    format: draft.format,
    ...(!isMail && draft.url ? { url: draft.url } : {}),
    ...(draft.format === "json" && draft.key ? { key: draft.key } : {}),
    events: [...draft.events],
    workflows: linesOf(draft.workflows),
    recipients: isMail ? linesOf(draft.recipients).map(recipientOf) : [],
    answerLinks: isMail && draft.answerLinks,
    language: draft.language,
  };
}

const addressPath = (name: string) => `/api/notifications/addresses/${encodeURIComponent(name)}`;
type Body = ReturnType<typeof destinationBody>;

export const testDestination = (name: string, body: Body) =>
  apiRequest<Schemas["TestedDestination"]>(`${addressPath(name)}/test`, { method: "POST", body });
/** `known`: as it was read; the server refuses the change if it has changed since. */
export const saveDestination = (name: string, body: Body, known: Address | null) =>
  apiRequest<Address>(addressPath(name), { method: "PUT", body, ...ifMatch(known?.etag ?? "") });
export const deleteDestination = (known: Address) =>
  apiRequest<void>(addressPath(known.name), { method: "DELETE", ...ifMatch(known.etag) });
