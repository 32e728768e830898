import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/http";
import { follow } from "./follow";

function stream(...parts: string[]): Response {
  const body = new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
      controller.close();
    },
  });
  return new Response(body, { status: 200 });
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("following a stream", () => {
  it("comes back with the last id, hears the rest, and ends when nothing more comes", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 1000 });
    const asked: (string | null)[] = [];
    const answers = [
      () => stream("id: 1.0\nevent: a\ndata: 1\n\nid: 1.", "1\nevent: b\ndata: 2\n\nid: 2.0\nevent: cut"),
      () => Promise.reject(new TypeError("network")),
      () => stream("event: live\ndata: x\n\nid: 2.0\nevent: c\ndata: 3\n\n"),
      () => new Response(null, { status: 204 }),
    ];
    vi.stubGlobal("fetch", async (_: string, options: RequestInit) => {
      asked.push(new Headers(options.headers).get("last-event-id"));
      return (answers.shift() as () => Response)();
    });
    const heard: string[] = [];
    const connections: string[] = [];
    await follow("/stream", {
      signal: new AbortController().signal,
      onEvent: ({ event }) => heard.push(event),
      onConnection: (one) => connections.push(one),
    });
    expect(heard).toEqual(["a", "b", "live", "c"]);
    expect(asked).toEqual([null, "1.1", "1.1", "2.0"]);
    expect(connections.at(-1)).toBe("over");
  });

  it("gives up where it is refused", async () => {
    vi.stubGlobal("fetch", async () => Response.json({ detail: "no", code: "not-allowed" }, { status: 403 }));
    const following = follow("/stream", { signal: new AbortController().signal, onEvent: () => undefined });
    await expect(following).rejects.toBeInstanceOf(ApiError);
  });
});
