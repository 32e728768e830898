/** One way to ask the server: JSON there and back, and problem documents (RFC 9457) as errors. */

import { hearTime } from "@/clock";

export interface Problem {
  code: string;
  severity: "error" | "warning" | "info";
  pointer: string;
  line: number | null;
  column: number | null;
  message: string;
  hint: string;
  fix: unknown;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly problems: Problem[];
  /** Of a trial that cannot be: which node it is about, and in which way. */
  readonly unfit: { node: string; why: string } | null;

  constructor(
    status: number,
    told: { detail?: string; code?: string; hint?: string; problems?: Problem[]; node?: string; why?: string },
  ) {
    super(told.detail || `HTTP ${status}`);
    this.status = status;
    this.code = told.code ?? "unreachable";
    this.hint = told.hint ?? "";
    this.problems = told.problems ?? [];
    this.unfit = told.node && told.why ? { node: told.node, why: told.why } : null;
  }

  /** The server did not answer at all. */
  get isAway(): boolean {
    return this.status === 0;
  }
}

/** What was asked for by its name is not there. */
export function isGone(why: unknown): boolean {
  return why instanceof ApiError && (why.status === 404 || isNoName(why));
}

/** Nothing is called so, and nothing can be: the server does not look for it. */
export function isNoName(why: ApiError | null): boolean {
  return why?.code === "not-found" || (why?.status === 422 && why.message.startsWith("path/"));
}

export interface Question {
  method?: string;
  body?: unknown;
  /** Sent as it is, instead of `body`. */
  text?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface Answer<T> {
  value: T;
  etag: string | null;
}

/** For a change of what was read with this ETag: where somebody else changed it since, nothing is written. */
export const over = (etag: string | null): Pick<Question, "headers"> => (etag ? { headers: { "if-match": etag } } : {});

export async function answerOf<T>(path: string, question: Question = {}): Promise<Answer<T>> {
  const headers = new Headers(question.headers);
  let body = question.text;
  if (question.body !== undefined) {
    headers.set("content-type", "application/json");
    body = JSON.stringify(question.body);
  }
  let response: Response;
  const asked = Date.now() / 1000;
  try {
    response = await fetch(path, {
      method: question.method ?? (body === undefined ? "GET" : "POST"),
      headers,
      credentials: "same-origin",
      ...(body === undefined ? {} : { body }),
      ...(question.signal ? { signal: question.signal } : {}),
    });
  } catch (why) {
    if (question.signal?.aborted) throw why;
    throw new ApiError(0, { detail: "The server does not answer.", code: "unreachable" });
  }
  hearTime(response.headers.get("date"), asked, Date.now() / 1000);
  if (!response.ok) throw await errorOf(response);
  const etag = response.headers.get("etag");
  if (response.status === 204) return { value: undefined as T, etag };
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  return { value: (isJson ? await response.json() : await response.text()) as T, etag };
}

export async function ask<T>(path: string, question?: Question): Promise<T> {
  return (await answerOf<T>(path, question)).value;
}

export async function errorOf(response: Response): Promise<ApiError> {
  const told = await response.json().catch(() => ({ detail: response.statusText }));
  return new ApiError(response.status, told);
}

/** A query string of what is there. */
export function query(values: Record<string, string | number | readonly string[] | null | undefined>): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) found.append(name, String(one));
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}
