/** All streams of the app, shared by its windows.
 *
 *   windows ──subscribe──▶ hub ──▶ one connection for each watched stream ──▶ events to all its subscribers
 *
 * Browsers allow six connections to a server over HTTP/1.1, for all windows together. Any number of windows can show
 * executions, but only the visible ones get a stream of their own. The others follow the board, one stream for all
 * executions. Events only report that something is new, or carry live output: after a gap a window loads the data again.
 */
import { ApiError } from "@/api/http";
import { type Connection, follow, type StreamMessage, WakeSignal } from "./follow";

/** Streams of single executions at once. The board needs one more connection; three are left for requests. */
export const SINGLES_MAX = 2;

export interface OpenMessage {
  kind: "open";
  watch: number;
  path: string;
  isBoard: boolean;
  /** The id after which the stream starts, if it is not connected yet. */
  after: string | null;
}

export type ToHub =
  | OpenMessage
  | { kind: "close"; watch: number }
  | { kind: "look"; isSeen: boolean }
  | { kind: "wake" }
  | { kind: "restart" }
  | { kind: "leave" };

export type FromHub =
  | { kind: "event"; watch: number; message: StreamMessage }
  | { kind: "connection"; watch: number; connection: Connection }
  | { kind: "refused"; watch: number; status: number; code: string; detail: string; hint: string }
  | { kind: "restarted" };

/** A window, from the hub's point of view. */
export interface Viewer {
  post: (message: FromHub) => void;
}

interface Watch {
  viewer: Viewer;
  number: number;
  path: string;
  isBoard: boolean;
  after: string | null;
}

interface RunningStream {
  stop: AbortController;
  connection: Connection | null;
}

export class Hub {
  private readonly watches: Watch[] = [];
  private readonly running = new Map<string, RunningStream>();
  /** The visible windows, the most recent last. */
  private readonly visible: Viewer[] = [];
  private readonly viewers = new Set<Viewer>();
  private readonly waker = new WakeSignal();

  constructor(private readonly connect: typeof follow = follow) {}

  handle(viewer: Viewer, message: ToHub): void {
    this.viewers.add(viewer);
    switch (message.kind) {
      case "open":
        this.watches.push({
          viewer,
          number: message.watch,
          path: message.path,
          isBoard: message.isBoard,
          after: message.after,
        });
        this.connectWanted();
        this.sendState(viewer, message.watch, message.path);
        break;
      case "close":
        this.drop((watch) => watch.viewer === viewer && watch.number === message.watch);
        break;
      case "look":
        this.hide(viewer);
        if (message.isSeen) this.visible.push(viewer);
        this.connectWanted();
        break;
      case "wake":
        this.waker.wake();
        break;
      case "restart":
        this.restart(viewer);
        break;
      case "leave":
        this.viewers.delete(viewer);
        this.hide(viewer);
        this.drop((watch) => watch.viewer === viewer);
        break;
    }
  }

  /** The addresses that are connected now. */
  get connected(): readonly string[] {
    return [...this.running.keys()];
  }

  /** Send a late subscriber the state of the connection; it loads what it missed. */
  private sendState(viewer: Viewer, watch: number, path: string): void {
    const connection = this.running.get(path)?.connection;
    if (connection) viewer.post({ kind: "connection", watch, connection });
  }

  /** Another user has logged in: end all streams of the previous user. */
  private restart(by: Viewer): void {
    for (const path of [...this.running.keys()]) this.end(path);
    for (const viewer of this.viewers) if (viewer !== by) viewer.post({ kind: "restarted" });
    this.connectWanted();
  }

  private hide(viewer: Viewer): void {
    const at = this.visible.indexOf(viewer);
    if (at >= 0) this.visible.splice(at, 1);
  }

  private drop(isDropped: (watch: Watch) => boolean): void {
    for (let at = this.watches.length - 1; at >= 0; at--)
      if (isDropped(this.watches[at] as Watch)) this.watches.splice(at, 1);
    this.connectWanted();
  }

  /** Connect the streams that are watched and fit the limit, and end the others. */
  private connectWanted(): void {
    const wanted = new Set(this.watches.filter((watch) => watch.isBoard).map((watch) => watch.path));
    let singles = 0;
    for (const watch of this.byVisibility()) {
      if (watch.isBoard || wanted.has(watch.path)) continue;
      if (singles++ === SINGLES_MAX) break;
      wanted.add(watch.path);
    }
    for (const path of [...this.running.keys()]) if (!wanted.has(path)) this.end(path);
    for (const path of wanted) if (!this.running.has(path)) void this.run(path);
  }

  /** Watches of the most recently visible window first. */
  private byVisibility(): Watch[] {
    const rank = (watch: Watch) => this.visible.indexOf(watch.viewer);
    return [...this.watches].sort((a, b) => rank(b) - rank(a));
  }

  private end(path: string): void {
    this.running.get(path)?.stop.abort();
    this.running.delete(path);
  }

  private async run(path: string): Promise<void> {
    const stop = new AbortController();
    const one: RunningStream = { stop, connection: null };
    this.running.set(path, one);
    const broadcast = (make: (watch: number) => FromHub) => {
      if (stop.signal.aborted) return;
      for (const watch of this.watches) if (watch.path === path) watch.viewer.post(make(watch.number));
    };
    try {
      await this.connect(path, {
        after: this.watches.find((watch) => watch.path === path)?.after ?? null,
        signal: stop.signal,
        waker: this.waker,
        onEvent: (message) => broadcast((watch) => ({ kind: "event", watch, message: message })),
        onConnection: (connection) => {
          one.connection = connection;
          broadcast((watch) => ({ kind: "connection", watch, connection }));
        },
      });
    } catch (why) {
      const { status = 0, code = "unreachable", hint = "" } = why instanceof ApiError ? why : {};
      broadcast((watch) => ({ kind: "refused", watch, status, code, detail: String((why as Error).message), hint }));
    }
  }
}
