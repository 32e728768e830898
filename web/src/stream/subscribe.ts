/** What a window hears of the streams: by the worker that all windows share, or in the window where there is none. */
import { ApiError } from "@/api/http";
import type { Connection, StreamMessage } from "./follow";
import { type FromHub, Hub, type Opening, type ToHub } from "./hub";
import { SharedHub } from "./sharedHub";

export interface Listener {
  /** Where a stream begins that nobody watches yet: behind what has this id. Absent: with what comes now. */
  after?: string;
  onEvent: (told: StreamMessage) => void;
  onConnection?: (connection: Connection) => void;
  onRefused?: (why: ApiError) => void;
}

/** All executions at once, as lists show them. */
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

  /** Somebody else looks: all windows begin again. */
  restart(): void {
    this.say({ kind: "restart" });
  }

  /** Called when another window let somebody else in. */
  onRestart(listener: () => void): () => void {
    this.restarted.add(listener);
    return () => this.restarted.delete(listener);
  }

  /** By the worker of all windows; where there is none, or it is silent, by a hub of its own. */
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

/** One for the window. */
export function sharedStreams(): Streams {
  streams ??= new Streams();
  return streams;
}
