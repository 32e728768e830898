/** A stream of server-sent events that reconnects by itself and resumes after the last event: no event is lost or
 * repeated. */
import { createParser } from "eventsource-parser";
import { ApiError, errorOf } from "@/api/http";

export interface StreamMessage {
  id: string | null;
  event: string;
  data: string;
}

export type Connection = "open" | "away" | "over";

const WAITS_MS = [500, 1_000, 2_000, 5_000, 10_000] as const;
/** The server sends a heartbeat every 15 s; after this silence the connection is considered broken. */
const SILENT_MS = 40_000;
/** After the machine wakes up, a shorter silence is enough to reconnect. */
const DOUBTED_MS = 18_000;

/** Wakes waiting connections: the machine woke up, the network is back, or the window became visible. */
export class WakeSignal {
  private readonly sleepers = new Set<() => void>();

  wake(): void {
    for (const rouse of [...this.sleepers]) rouse();
  }

  onWake(rouse: () => void): () => void {
    this.sleepers.add(rouse);
    return () => this.sleepers.delete(rouse);
  }
}

/** Follow a stream until it ends, is refused (throws), or `signal` aborts. `after` is the id of the last known
 * event. */
export async function follow(
  path: string,
  options: {
    after?: string | null;
    signal: AbortSignal;
    waker?: WakeSignal;
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
        // The store was restored from a backup and no longer has the last event.
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

/** One connection, aborted after too long a silence. */
class Line {
  private readonly cut = new AbortController();
  private timer: ReturnType<typeof setTimeout>;
  private at = Date.now();
  private readonly leave: () => void;
  readonly signal: AbortSignal;

  constructor(over: AbortSignal, waker: WakeSignal | undefined) {
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

function pause(ms: number, signal: AbortSignal, waker: WakeSignal | undefined): Promise<void> {
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
