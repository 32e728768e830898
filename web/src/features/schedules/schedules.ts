/** Queries and mutations of schedules. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type ApiResponse, apiRequest, apiResponse, ifMatch, query } from "@/api/http";
import type { Json, Schemas } from "@/api/views";
import type { Timing } from "./timing";

export type Schedule = Schemas["ScheduleView"];
export type FiredTime = Schemas["FiredView"];
export type Missed = Schedule["missed"];
export type Overlap = Schedule["overlap"];

/** The fields of a schedule that a user sets. */
export type ScheduleFields = Timing & { workflow: string; input: Json; missed: Missed; overlap: Overlap };

const path = (id: string) => `/api/schedules/${encodeURIComponent(id)}`;

/** Search by id of the schedule or of its workflow, page by page. */
export const schedules = (words: string) =>
  infiniteQueryOptions({
    queryKey: ["schedules", { words }],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["SchedulePage"]>(`/api/schedules${query({ search: words, after: pageParam, limit: 50 })}`, {
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: (before) => before,
    refetchInterval: 10_000,
  });

export const schedule = (id: string) =>
  queryOptions({
    queryKey: ["schedules", id],
    queryFn: ({ signal }) => apiResponse<Schedule>(path(id), { signal }),
    refetchInterval: 10_000,
  });

export const timesOf = (id: string, count: number) =>
  queryOptions({
    queryKey: ["schedules", id, "times", count],
    queryFn: ({ signal }) => apiRequest<{ times: number[] }>(`${path(id)}/times?count=${count}`, { signal }),
    select: (response) => response.times,
  });

/** The due times of a schedule that is not saved yet. */
export const previewTimes = (timing: Timing | null) =>
  queryOptions({
    enabled: timing !== null,
    queryKey: ["schedules", "tried", timing],
    queryFn: ({ signal }) => apiRequest<{ times: number[] }>("/api/schedules/times", { body: timing, signal }),
    select: (response) => response.times,
    retry: false,
  });

export const createSchedule = (id: string, fields: ScheduleFields) =>
  apiRequest<Schedule>("/api/schedules", { body: { ...fields, ...(id ? { id } : {}) } });

/** Change a schedule. Throws if it has changed since it was loaded. */
export const updateSchedule = (read: ApiResponse<Schedule>, fields: ScheduleFields) =>
  apiRequest<Schedule>(path(read.value.id), {
    method: "PUT",
    body: fields,
    ...ifMatch(read.etag),
  });

export const setPaused = (id: string, isResting: boolean) =>
  apiRequest<Schedule>(`${path(id)}/${isResting ? "pause" : "resume"}`, { method: "POST" });

export const runNow = (id: string) => apiRequest<FiredTime>(`${path(id)}/run`, { method: "POST" });

export const deleteSchedule = (read: ApiResponse<Schedule>) =>
  apiRequest<void>(path(read.value.id), { method: "DELETE", ...ifMatch(read.etag) });

/** Return whether a schedule starts nothing until it is resumed: it was paused, or its owner lost the right. */
export function isResting(one: Schedule): boolean {
  return one.paused || one.stopped !== null;
}
