/** A stream of server-sent events that comes back by itself, and hears what it missed: nothing is lost, nothing comes twice. */
import { createParser } from "eventsource-parser";
import { ApiError, errorOf } from "@/api/http";

export interface StreamMessage {
  id: string | null;
  event: string;
  data: string;
}

export type Connection = "open" | "away" | "over";

const WAITS_MS = [500, 1_000, 2_000, 5_000, 10_000] as const;
/** The server says every 15 s that it lives; who hears nothing for so long is not connected any more. */
const SILENT_MS = 40_000;
/** After a sleep a shorter silence is enough to doubt the connection. */
const DOUBTED_MS = 18_000;

/** Rouses whoever waits: the machine woke up, the network is back, somebody looks. */
export class Waker {
  private readonly sleepers = new Set<() => void>();

  wake(): void {
    for (const rouse of [...this.sleepers]) rouse();
  }

  onWake(rouse: () => void): () => void {
    this.sleepers.add(rouse);
    return () => this.sleepers.delete(rouse);
  }
}

/** Until the stream is over, it is refused, or `signal` aborts. `after`: the id of the last event that is known. */
export async function follow(
  path: string,
  options: {
    after?: string | null;
    signal: AbortSignal;
    waker?: Waker;
    onEvent: (told: StreamMessage) => void;
    onConnection?: (connection: Connection) => void;
  },
): Promise<void> {
  let last = options.after ?? null;
  let failures = 0;
  const tell = options.onConnection ?? (() => undefined);
  while (!options.signal.aborted) {
    const line = new Line(options.signal, options.waker);
    try {
      const response = await fetch(path, {
        headers: { accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) },
        credentials: "same-origin",
        signal: line.signal,
      });
      if (response.status === 204) return tell("over");
      if (!response.ok) {
        const why = await errorOf(response);
        // The store was put back: what was heard last is not there any more.
        if (why.code === "position-invalid" && last !== null) last = null;
        else if (response.status < 500 && response.status !== 429) throw why;
      } else if (response.body) {
        failures = 0;
        tell("open");
        const parser = createParser({
          onEvent: ({ id, event, data }) => {
            if (id) last = id;
            options.onEvent({ id: id ?? null, event: event ?? "message", data });
          },
        });
        await read(response.body, (text) => {
          line.heard();
          parser.feed(text);
        });
      }
    } catch (why) {
      if (options.signal.aborted) return;
      if (why instanceof ApiError) throw why;
    } finally {
      line.close();
    }
    tell("away");
    await pause(WAITS_MS[Math.min(failures++, WAITS_MS.length - 1)] ?? 10_000, options.signal, options.waker);
  }
}

/** One connection, and the doubt whether it still is one. */
class Line {
  private readonly cut = new AbortController();
  private timer: ReturnType<typeof setTimeout>;
  private at = Date.now();
  private readonly leave: () => void;
  readonly signal: AbortSignal;

  constructor(over: AbortSignal, waker: Waker | undefined) {
    this.signal = AbortSignal.any([over, this.cut.signal]);
    this.timer = setTimeout(() => this.cut.abort(), SILENT_MS);
    this.leave = waker?.onWake(() => Date.now() - this.at > DOUBTED_MS && this.cut.abort()) ?? (() => undefined);
  }

  heard(): void {
    this.at = Date.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.cut.abort(), SILENT_MS);
  }

  close(): void {
    clearTimeout(this.timer);
    this.leave();
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

function pause(ms: number, signal: AbortSignal, waker: Waker | undefined): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      leave?.();
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    const leave = waker?.onWake(over);
    signal.addEventListener("abort", over);
  });
}
