/** The streams of one window: through the shared worker, or through a hub in the window if workers are not available. */
import { ApiError } from "@/api/http";
import type { Connection, StreamMessage } from "./follow";
import { type FromHub, Hub, type OpenMessage, type ToHub } from "./hub";
import { SharedHub } from "./sharedHub";

export interface Listener {
  /** Start after the event with this id, if nothing follows the stream yet. Absent: start with new events. */
  after?: string;
  onEvent: (message: StreamMessage) => void;
  onConnection?: (connection: Connection) => void;
  onRefused?: (why: ApiError) => void;
}

/** The stream of all executions, for lists. */
export const BOARD = "/api/workflows/executions/stream";

export class Streams {
  private readonly listeners = new Map<number, Listener>();
  private readonly watches = new Map<number, Omit<OpenMessage, "kind" | "watch">>();
  private readonly restartListeners = new Set<() => void>();
  private send: (message: ToHub) => void = () => undefined;
  private shared: SharedHub | null = null;
  private last = 0;

  constructor() {
    this.connectHub();
    this.sendVisibility();
    document.addEventListener("visibilitychange", () => {
      this.sendVisibility();
      if (document.visibilityState === "visible") this.wake();
    });
    window.addEventListener("focus", () => this.sendVisibility());
    window.addEventListener("online", () => this.wake());
    window.addEventListener("pagehide", () => this.send({ kind: "leave" }));
    window.addEventListener("pageshow", (shown) => shown.persisted && this.resubscribe());
  }

  subscribe(path: string, listener: Listener): () => void {
    const watch = ++this.last;
    const isBoard = path === BOARD;
    this.listeners.set(watch, listener);
    const after = listener.after ?? null;
    this.watches.set(watch, { path, isBoard, after });
    this.send({ kind: "open", watch, path, isBoard, after });
    return () => {
      this.listeners.delete(watch);
      this.watches.delete(watch);
      this.send({ kind: "close", watch });
    };
  }

  /** Another user has logged in: restart the streams of all windows. */
  restart(): void {
    this.send({ kind: "restart" });
  }

  /** Calls the listener when another user logs in from another window. */
  onRestart(listener: () => void): () => void {
    this.restartListeners.add(listener);
    return () => this.restartListeners.delete(listener);
  }

  /** Use the shared worker; if it is not available or stops responding, use a hub of this window. */
  private connectHub(): void {
    const startOwnHub = () => {
      const hub = new Hub();
      const window = { post: (message: FromHub) => this.receive(message) };
      this.shared = null;
      this.send = (message) => hub.handle(window, message);
    };
    try {
      const shared = new SharedHub(
        (message) => this.receive(message),
        () => {
          startOwnHub();
          this.resubscribe();
        },
      );
      this.shared = shared;
      this.send = (message) => shared.send(message);
    } catch {
      startOwnHub();
    }
  }

  private wake(): void {
    this.send({ kind: "wake" });
    this.shared?.probe();
  }

  private sendVisibility(): void {
    this.send({ kind: "look", isSeen: document.visibilityState === "visible" });
  }

  private resubscribe(): void {
    this.sendVisibility();
    for (const [watch, what] of this.watches) this.send({ kind: "open", watch, ...what });
  }

  private receive(message: FromHub): void {
    if (message.kind === "restarted") {
      for (const listener of [...this.restartListeners]) listener();
      return;
    }
    const listener = this.listeners.get(message.watch);
    if (message.kind === "event") listener?.onEvent(message.message);
    else if (message.kind === "connection") listener?.onConnection?.(message.connection);
    else listener?.onRefused?.(new ApiError(message.status, message));
  }
}

let streams: Streams | null = null;

/** The instance of this window. */
export function sharedStreams(): Streams {
  streams ??= new Streams();
  return streams;
}
