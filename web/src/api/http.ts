/** Requests to the server: JSON bodies and responses, problem documents (RFC 9457) as errors. */

import { updateServerTime } from "@/clock";

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
  /** For a partial run that cannot start: the node it fails at, and the reason. */
  readonly unfit: { node: string; reason: string } | null;

  constructor(
    status: number,
    problem: { detail?: string; code?: string; hint?: string; problems?: Problem[]; node?: string; why?: string },
  ) {
    super(problem.detail || `HTTP ${status}`);
    this.status = status;
    this.code = problem.code ?? "unreachable";
    this.hint = problem.hint ?? "";
    this.problems = problem.problems ?? [];
    this.unfit = problem.node && problem.why ? { node: problem.node, reason: problem.why } : null;
  }

  /** The server did not respond at all. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

/** The named thing does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || isUnknownName(error));
}

/** The name is not valid, so nothing can have it; the server does not search for it. */
export function isUnknownName(error: ApiError | null): boolean {
  return error?.code === "not-found" || (error?.status === 422 && error.message.startsWith("path/"));
}

export interface RequestOptions {
  method?: string;
  body?: unknown;
  /** Sent unchanged, instead of `body`. */
  text?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Send the request even if the page is closed meanwhile. Browsers refuse bodies above 64 KB. */
  keepalive?: boolean;
}

export interface ApiResponse<T> {
  value: T;
  etag: string | null;
}

/** Headers of a conditional change: the server rejects it if the resource no longer has this ETag. An empty ETag: if the
 * resource exists. Null: the change is not conditional. */
export function ifMatch(etag: string | null): Pick<RequestOptions, "headers"> {
  if (etag === null) return {};
  return { headers: etag ? { "if-match": etag } : { "if-none-match": "*" } };
}

export async function apiResponse<T>(path: string, options: RequestOptions = {}): Promise<ApiResponse<T>> {
  const headers = new Headers(options.headers);
  let body = options.text;
  if (options.body !== undefined) {
    headers.set("content-type", "application/json");
    body = JSON.stringify(options.body);
  }
  let response: Response;
  const sentAt = Date.now() / 1000;
  try {
    response = await fetch(path, {
      method: options.method ?? (body === undefined ? "GET" : "POST"),
      headers,
      credentials: "same-origin",
      ...(body === undefined ? {} : { body }),
      ...(options.signal ? { signal: options.signal } : {}),
      ...(options.keepalive ? { keepalive: true } : {}),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, { detail: "The server does not answer.", code: "unreachable" });
  }
  updateServerTime(response.headers.get("date"), sentAt, Date.now() / 1000);
  if (!response.ok) throw await errorOf(response);
  const etag = response.headers.get("etag");
  if (response.status === 204) return { value: undefined as T, etag };
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  return { value: (isJson ? await response.json() : await response.text()) as T, etag };
}

export async function apiRequest<T>(path: string, options?: RequestOptions): Promise<T> {
  return (await apiResponse<T>(path, options)).value;
}

export async function errorOf(response: Response): Promise<ApiError> {
  const problem = await response.json().catch(() => ({ detail: response.statusText }));
  return new ApiError(response.status, problem);
}

/** Build a query string; empty values are left out. */
export function query(values: Record<string, string | number | readonly string[] | null | undefined>): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) found.append(name, String(one));
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}
