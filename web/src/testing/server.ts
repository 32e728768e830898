/** A fake server for component tests. Its responses have the types of the OpenAPI document, and each request is checked
 * against the document, so that a change of the API breaks the tests it affects. */
import { type Schema, Validator } from "@cfworker/json-schema";
import type { paths } from "@/api/schema";
import requests from "./requests.json";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths of the API that have the method `M`. */
type PathOf<M extends Method> = { [P in keyof paths]: paths[P][M] extends object ? P : never }[keyof paths] & string;

type Success<R> = R[keyof R & (200 | 201 | 202)];
type Content<R> = R extends { content: infer C } ? C[keyof C] : undefined;

/** The response of an operation on success. */
export type AnswerOf<M extends Method, P extends keyof paths> = paths[P][M] extends { responses: infer R }
  ? [Success<R>] extends [never]
    ? undefined
    : Content<Success<R>>
  : never;

export interface RecordedRequest {
  method: Method;
  /** The path template in the OpenAPI document. */
  path: string;
  /** Path parameters by name. */
  at: Record<string, string>;
  query: URLSearchParams;
  headers: Headers;
  /** Parsed if the request is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its page sends
  body: any;
}

/** A response other than the value with status 200. */
export class Reply {
  constructor(
    readonly status: number,
    readonly value: unknown,
    readonly headers: Record<string, string> = {},
  ) {}
}

/** An error response with a problem document. */
export const refusal = (status: number, code: string, detail: string, more: object = {}): Reply =>
  new Reply(status, { type: `/errors/${code}`, title: code, status, code, detail, ...more });

/** A value with its ETag. */
export const tagged = <T>(value: T, etag: string): Reply & { of?: T } => new Reply(200, value, { etag });

type Handler<T> = T | Reply | ((requestsTo: RecordedRequest) => T | Reply | Promise<T | Reply>);

interface Route {
  method: Method;
  path: string;
  pattern: RegExp;
  handler: Handler<unknown>;
}

interface Described {
  query: string[];
  body: object | null;
}

/** Paths whose parameter may contain slashes. */
const PATHS_WITH_SLASHES: ReadonlySet<string> = new Set(["/api/notifications/{id}/retry"]);

const DESCRIBED = requests.paths as unknown as Record<string, Partial<Record<Method, Described>>>;
const SCHEMAS = requests.components as Record<string, object>;

export class FakeServer {
  private routes: Route[] = [];
  /** All requests of the pages, in order. */
  readonly requests: RecordedRequest[] = [];
  /** Requests without a handler, and requests that the OpenAPI document does not allow. */
  readonly unexpected: string[] = [];
  private readonly streams = new Map<string, Set<ReadableStreamDefaultController<Uint8Array>>>();

  get = <P extends PathOf<"get">>(path: P, handler: Handler<AnswerOf<"get", P>>) => this.on("get", path, handler);
  post = <P extends PathOf<"post">>(path: P, handler: Handler<AnswerOf<"post", P>>) => this.on("post", path, handler);
  put = <P extends PathOf<"put">>(path: P, handler: Handler<AnswerOf<"put", P>>) => this.on("put", path, handler);
  patch = <P extends PathOf<"patch">>(path: P, handler: Handler<AnswerOf<"patch", P>>) =>
    this.on("patch", path, handler);
  delete = <P extends PathOf<"delete">>(path: P, handler: Handler<AnswerOf<"delete", P>>) =>
    this.on("delete", path, handler);

  /** A later handler of the same operation replaces an earlier one. */
  private on(method: Method, path: string, handler: Handler<unknown>): void {
    const one = PATHS_WITH_SLASHES.has(path) ? "(.+)" : "([^/]+)";
    const pattern = new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, one)}$`);
    this.routes.unshift({ method, path, pattern, handler });
  }

  /** The requests of one operation. */
  requestsTo<M extends Method>(method: M, path: PathOf<M>): RecordedRequest[] {
    return this.requests.filter((one) => one.method === method && one.path === path);
  }

  /** The bodies of these requests. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what its page sends
  bodiesTo<M extends Method>(method: M, path: PathOf<M>): any[] {
    return this.requestsTo(method, path).map((one) => one.body);
  }

  /** Send one server-sent event to all followers of an address, such as "/api/workflows/executions/stream". */
  sendEvent(address: string, event: string, data: unknown, id = ""): void {
    const text = `${id ? `id: ${id}\n` : ""}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    for (const one of this.streams.get(address) ?? []) one.enqueue(new TextEncoder().encode(text));
  }

  followers(address: string): number {
    return this.streams.get(address)?.size ?? 0;
  }

  /** End all streams. */
  close(): void {
    for (const [, all] of this.streams) for (const one of all) one.close();
    this.streams.clear();
  }

  /** Replaces the browser's `fetch`. */
  fetch = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(String(input), "http://pointsman.test");
    const method = (init.method ?? "GET").toLowerCase() as Method;
    const headers = new Headers(init.headers);
    init.signal?.throwIfAborted();
    if (headers.get("accept") === "text/event-stream") return this.follow(url.pathname, init.signal ?? null);
    // The app asks whether the server is there after a part of it could not be loaded.
    if (url.pathname === "/favicon.svg") return new Response("<svg/>");
    const route = this.find(method, url.pathname);
    if (route === null) {
      this.unexpected.push(`nothing answers ${method} ${url.pathname}${url.search}`);
      return new Response(JSON.stringify({ code: "nobody", detail: "no handler" }), { status: 501 });
    }
    const requestsTo = recordedRequest(route, url, headers, init);
    this.requests.push(requestsTo);
    this.check(requestsTo);
    const { handler } = route;
    const result = await (typeof handler === "function"
      ? (handler as (one: RecordedRequest) => unknown)(requestsTo)
      : handler);
    init.signal?.throwIfAborted();
    return responseOf(result);
  };

  private find(method: Method, path: string): Route | null {
    const fits = this.routes.filter((one) => one.method === method && one.pattern.test(path));
    // "/executions/bulk" must not match "/executions/{id}".
    return fits.sort((a, b) => names(a).length - names(b).length)[0] ?? null;
  }

  private follow(path: string, signal: AbortSignal | null): Response {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const all = this.streams.get(path) ?? new Set();
        this.streams.set(path, all.add(controller));
        signal?.addEventListener("abort", () => {
          all.delete(controller);
          controller.error(signal.reason);
        });
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  /** A request that the API would reject is an error of the page, whatever the test's handler answers. */
  private check(requestsTo: RecordedRequest): void {
    const described = DESCRIBED[requestsTo.path]?.[requestsTo.method];
    const name = `${requestsTo.method} ${requestsTo.path}`;
    if (described === undefined) this.unexpected.push(`the API has no ${name}`);
    for (const key of requestsTo.query.keys())
      if (!described?.query.includes(key)) this.unexpected.push(`${name} takes no “${key}” in its query`);
    if (described?.body == null || typeof requestsTo.body === "string" || requestsTo.body === undefined) return;
    const schema = { ...described.body, components: { schemas: SCHEMAS } } as Schema;
    const { valid, errors } = new Validator(schema, "2020-12", false).validate(requestsTo.body);
    if (!valid) this.unexpected.push(`${name} does not take this: ${errors.map((one) => one.error).join("; ")}`);
  }
}

const names = (route: Route) => route.path.match(/\{[^}]+\}/g) ?? [];

function recordedRequest(route: Route, url: URL, headers: Headers, init: RequestInit): RecordedRequest {
  const values = route.pattern.exec(url.pathname)?.slice(1) ?? [];
  const at = Object.fromEntries(names(route).map((one, n) => [one.slice(1, -1), decodeURIComponent(values[n] ?? "")]));
  const text = typeof init.body === "string" ? init.body : undefined;
  const isJson = (headers.get("content-type") ?? "").includes("json");
  const body = text !== undefined && isJson ? JSON.parse(text) : text;
  return { method: route.method, path: route.path, at, query: url.searchParams, headers, body };
}

function responseOf(result: unknown): Response {
  const reply = result instanceof Reply ? result : new Reply(result === undefined ? 204 : 200, result);
  const headers = { "content-type": "application/json", ...reply.headers };
  if (reply.status === 204) return new Response(null, { status: 204, headers: reply.headers });
  return new Response(JSON.stringify(reply.value), { status: reply.status, headers });
}
