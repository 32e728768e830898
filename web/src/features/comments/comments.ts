/** Requests for comments and mentions. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, query } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Comment = Schemas["CommentView"];
export type Mention = Schemas["MentionView"];

/** What comments are about. */
export interface Subject {
  kind: "workflow" | "execution";
  id: string;
}

/** Other people's comments appear after at most this time. */
const REFRESH_MS = 30_000;

export const commentsOn = ({ kind, id }: Subject) =>
  queryOptions({
    queryKey: ["comments", kind, id],
    queryFn: ({ signal }) =>
      apiRequest<Schemas["CommentList"]>(`/api/comments${query({ kind, subject: id })}`, { signal }).then(
        (response) => response.comments,
      ),
    refetchInterval: REFRESH_MS,
  });

export const markMentionsRead = () => apiRequest<void>("/api/mentions/read", { method: "POST" });

export const addComment = ({ kind, id }: Subject, place: string, text: string) =>
  apiRequest<Comment>("/api/comments", { body: { kind, subject: id, place, text } });

export const changeComment = (id: string, body: { text?: string; resolved?: boolean }) =>
  apiRequest<Comment>(`/api/comments/${encodeURIComponent(id)}`, { method: "PATCH", body });

export const deleteComment = (id: string) =>
  apiRequest<void>(`/api/comments/${encodeURIComponent(id)}`, { method: "DELETE" });

/** The comments on a place, or all of them; resolved ones only on request. */
export function shownComments(
  all: readonly Comment[],
  place: string | null,
  withResolved: boolean,
): readonly Comment[] {
  return all.filter((one) => (place === null || one.place === place) && (withResolved || one.resolvedBy === null));
}
