import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/http";
import { follow, WakeSignal } from "./follow";

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
  it("reconnects with the last id, receives the rest, and ends with the stream", async () => {
    vi.useFakeTimers();
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
    const following = follow("/stream", {
      signal: new AbortController().signal,
      onEvent: ({ event }) => heard.push(event),
      onConnection: (one) => connections.push(one),
    });
    await vi.advanceTimersByTimeAsync(60_000);
    await following;
    expect(heard).toEqual(["a", "b", "live", "c"]);
    expect(asked).toEqual([null, "1.1", "1.1", "2.0"]);
    expect(connections.at(-1)).toBe("over");
  });

  it("throws when the stream is refused", async () => {
    vi.stubGlobal("fetch", async () => Response.json({ detail: "no", code: "not-allowed" }, { status: 403 }));
    const following = follow("/stream", { signal: new AbortController().signal, onEvent: () => undefined });
    await expect(following).rejects.toBeInstanceOf(ApiError);
  });
});

describe("silent connection", () => {
  it("is replaced after a timeout, or at once after a wake-up", async () => {
    vi.useFakeTimers();
    let asked = 0;
    vi.stubGlobal("fetch", async (_: string, options: RequestInit) => {
      asked += 1;
      const body = new ReadableStream({
        start: (controller) => options.signal?.addEventListener("abort", () => controller.error(new Error("cut"))),
      });
      return new Response(body, { status: 200 });
    });
    const stop = new AbortController();
    const waker = new WakeSignal();
    const connections: string[] = [];
    const following = follow("/stream", {
      signal: stop.signal,
      waker,
      onEvent: () => undefined,
      onConnection: (one) => connections.push(one),
    });
    await vi.advanceTimersByTimeAsync(39_000);
    expect([asked, connections]).toEqual([1, ["open"]]);
    await vi.advanceTimersByTimeAsync(1_001);
    expect(connections).toEqual(["open", "away"]);
    waker.wake();
    await vi.advanceTimersByTimeAsync(1);
    expect([asked, connections]).toEqual([2, ["open", "away", "open"]]);
    await vi.advanceTimersByTimeAsync(20_000);
    waker.wake();
    await vi.advanceTimersByTimeAsync(1);
    expect(connections.at(-1)).toBe("away");
    stop.abort();
    await following;
  });

  it("drops an id that the server does not know and starts again", async () => {
    vi.useFakeTimers();
    const asked: (string | null)[] = [];
    const answers = [
      () => Response.json({ detail: "no", code: "position-invalid" }, { status: 422 }),
      () => new Response(null, { status: 204 }),
    ];
    vi.stubGlobal("fetch", async (_: string, options: RequestInit) => {
      asked.push(new Headers(options.headers).get("last-event-id"));
      return (answers.shift() as () => Response)();
    });
    const stop = new AbortController();
    const following = follow("/stream", { after: "9.0", signal: stop.signal, onEvent: () => undefined });
    await vi.advanceTimersByTimeAsync(60_000);
    await following;
    expect(asked).toEqual(["9.0", null]);
  });
});
