/** A stream of server-sent events that comes back by itself, and hears what it missed: nothing is lost, nothing comes twice. */
import { createParser } from "eventsource-parser";
import { errorOf } from "@/api/http";

export interface Told {
  id: string | null;
  event: string;
  data: string;
}

export type Connection = "open" | "away" | "over";

const WAITS_MS = [500, 1_000, 2_000, 5_000, 10_000] as const;

/** Until the stream is over, it is refused, or `signal` aborts. `after`: the id of the last event that is known. */
export async function follow(
  path: string,
  options: {
    after?: string | null;
    signal: AbortSignal;
    onEvent: (told: Told) => void;
    onConnection?: (connection: Connection) => void;
  },
): Promise<void> {
  let last = options.after ?? null;
  let failures = 0;
  const tell = options.onConnection ?? (() => undefined);
  while (!options.signal.aborted) {
    try {
      const response = await fetch(path, {
        headers: { accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) },
        credentials: "same-origin",
        signal: options.signal,
      });
      if (response.status === 204) return tell("over");
      if (!response.ok) {
        if (response.status < 500 && response.status !== 429) throw await errorOf(response);
      } else if (response.body) {
        failures = 0;
        tell("open");
        const parser = createParser({
          onEvent: ({ id, event, data }) => {
            if (id) last = id;
            options.onEvent({ id: id ?? null, event: event ?? "message", data });
          },
        });
        await read(response.body, (text) => parser.feed(text));
      }
    } catch (why) {
      if (options.signal.aborted) return;
      if (!(why instanceof TypeError)) throw why;
    }
    tell("away");
    await pause(WAITS_MS[Math.min(failures++, WAITS_MS.length - 1)] ?? 10_000, options.signal);
  }
}

async function read(body: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    take(decoder.decode(value, { stream: true }));
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
