/** Queries and mutations of notifications. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { apiRequest, query } from "@/api/http";
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
