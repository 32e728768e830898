/** The streams of one window: through the shared worker, or through a hub in the window if there is no worker. */
import { ApiError } from "@/api/http";
import type { Connection, StreamMessage } from "./follow";
import { type FromHub, Hub, type Opening, type ToHub } from "./hub";
import { SharedHub } from "./sharedHub";

export interface Listener {
  /** Start after the event with this id, if nothing follows the stream yet. Absent: start with new events. */
  after?: string;
  onEvent: (told: StreamMessage) => void;
  onConnection?: (connection: Connection) => void;
  onRefused?: (why: ApiError) => void;
}

/** The stream of all executions, for lists. */
export const BOARD = "/api/workflows/executions/stream";

export class Streams {
  private readonly listeners = new Map<number, Listener>();
  private readonly watched = new Map<number, Omit<Opening, "kind" | "watch">>();
  private readonly restarted = new Set<() => void>();
  private say: (message: ToHub) => void = () => undefined;
  private shared: SharedHub | null = null;
  private last = 0;

  constructor() {
    this.share();
    this.look();
    document.addEventListener("visibilitychange", () => {
      this.look();
      if (document.visibilityState === "visible") this.wake();
    });
    window.addEventListener("focus", () => this.look());
    window.addEventListener("online", () => this.wake());
    window.addEventListener("pagehide", () => this.say({ kind: "leave" }));
    window.addEventListener("pageshow", (shown) => shown.persisted && this.comeBack());
  }

  subscribe(path: string, listener: Listener): () => void {
    const watch = ++this.last;
    const isBoard = path === BOARD;
    this.listeners.set(watch, listener);
    const after = listener.after ?? null;
    this.watched.set(watch, { path, isBoard, after });
    this.say({ kind: "open", watch, path, isBoard, after });
    return () => {
      this.listeners.delete(watch);
      this.watched.delete(watch);
      this.say({ kind: "close", watch });
    };
  }

  /** Another user has logged in: restart the streams of all windows. */
  restart(): void {
    this.say({ kind: "restart" });
  }

  /** Calls the listener when another user logs in from another window. */
  onRestart(listener: () => void): () => void {
    this.restarted.add(listener);
    return () => this.restarted.delete(listener);
  }

  /** Use the shared worker; if there is none or it stops responding, use a hub of this window. */
  private share(): void {
    const beAlone = () => {
      const hub = new Hub();
      const window = { post: (message: FromHub) => this.hear(message) };
      this.shared = null;
      this.say = (message) => hub.take(window, message);
    };
    try {
      const shared = new SharedHub(
        (message) => this.hear(message),
        () => {
          beAlone();
          this.comeBack();
        },
      );
      this.shared = shared;
      this.say = (message) => shared.say(message);
    } catch {
      beAlone();
    }
  }

  private wake(): void {
    this.say({ kind: "wake" });
    this.shared?.doubt();
  }

  private look(): void {
    this.say({ kind: "look", isSeen: document.visibilityState === "visible" });
  }

  private comeBack(): void {
    this.look();
    for (const [watch, what] of this.watched) this.say({ kind: "open", watch, ...what });
  }

  private hear(message: FromHub): void {
    if (message.kind === "restarted") {
      for (const listener of [...this.restarted]) listener();
      return;
    }
    const listener = this.listeners.get(message.watch);
    if (message.kind === "told") listener?.onEvent(message.told);
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
