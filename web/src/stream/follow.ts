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

const RETRY_DELAYS_MS = [500, 1_000, 2_000, 5_000, 10_000] as const;
/** The server sends a heartbeat every 15 s; after this silence the connection is considered broken. */
const SILENCE_MAX_MS = 40_000;
/** After the machine wakes up, a shorter silence is enough to reconnect. */
const SILENCE_AFTER_SLEEP_MS = 18_000;

/** Wakes waiting connections: the machine woke up, the network is back, or the window became visible. */
export class WakeSignal {
  private readonly listeners = new Set<() => void>();

  wake(): void {
    for (const wakeUp of [...this.listeners]) wakeUp();
  }

  onWake(wakeUp: () => void): () => void {
    this.listeners.add(wakeUp);
    return () => this.listeners.delete(wakeUp);
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
    onEvent: (message: StreamMessage) => void;
    onConnection?: (connection: Connection) => void;
  },
): Promise<void> {
  let last = options.after ?? null;
  let failures = 0;
  const notify = options.onConnection ?? (() => undefined);
  while (!options.signal.aborted) {
    const line = new StreamConnection(options.signal, options.waker);
    try {
      const response = await fetch(path, {
        headers: { accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) },
        credentials: "same-origin",
        signal: line.signal,
      });
      if (response.status === 204) return notify("over");
      if (!response.ok) {
        const why = await errorOf(response);
        // The store was restored from a backup and no longer has the last event.
        if (why.code === "position-invalid" && last !== null) last = null;
        else if (response.status < 500 && response.status !== 429) throw why;
      } else if (response.body) {
        failures = 0;
        notify("open");
        const parser = createParser({
          onEvent: ({ id, event, data }) => {
            if (id) last = id;
            options.onEvent({ id: id ?? null, event: event ?? "message", data });
          },
        });
        await read(response.body, (text) => {
          line.received();
          parser.feed(text);
        });
      }
    } catch (why) {
      if (options.signal.aborted) return;
      if (why instanceof ApiError) throw why;
    } finally {
      line.close();
    }
    notify("away");
    await pause(
      RETRY_DELAYS_MS[Math.min(failures++, RETRY_DELAYS_MS.length - 1)] ?? 10_000,
      options.signal,
      options.waker,
    );
  }
}

/** One connection, aborted after too long a silence. */
class StreamConnection {
  private readonly cut = new AbortController();
  private timer: ReturnType<typeof setTimeout>;
  private at = Date.now();
  private readonly unsubscribe: () => void;
  readonly signal: AbortSignal;

  constructor(over: AbortSignal, waker: WakeSignal | undefined) {
    this.signal = AbortSignal.any([over, this.cut.signal]);
    this.timer = setTimeout(() => this.cut.abort(), SILENCE_MAX_MS);
    this.unsubscribe =
      waker?.onWake(() => Date.now() - this.at > SILENCE_AFTER_SLEEP_MS && this.cut.abort()) ?? (() => undefined);
  }

  received(): void {
    this.at = Date.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.cut.abort(), SILENCE_MAX_MS);
  }

  close(): void {
    clearTimeout(this.timer);
    this.unsubscribe();
  }
}

async function read(body: ReadableStream<Uint8Array>, onText: (text: string) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onText(decoder.decode(value, { stream: true }));
  }
}

function pause(ms: number, signal: AbortSignal, waker: WakeSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      unsubscribe?.();
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    const unsubscribe = waker?.onWake(over);
    signal.addEventListener("abort", over);
  });
}
