/** The journal of one execution in the page: loaded page by page, then followed live.
 *
 *   board, stream ── news ──▶ load events after the last one ──▶ events ──▶ timeline
 *
 * Events are loaded by position, so each is loaded once, whatever the streams lose or repeat. Of a long journal only the
 * latest events stay whole. Older ones become summaries and are loaded again when the user looks at them.
 */
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { ApiError, apiRequest, query } from "@/api/http";
import { executionPath } from "@/api/queries";
import { ENDED, type EventPage, type ExecutionStatus, type JournalEvent } from "@/api/views";
import type { Connection, StreamMessage } from "@/stream/follow";
import { BOARD, sharedStreams } from "@/stream/subscribe";
import { summarize } from "./eventSummary";
import { LiveOutput } from "./live";
import { applyEvent, type ExecutionTimeline, emptyTimeline, isOver } from "./timelineModel";

const PAGE = 5_000;
const DEBOUNCE_MS = 80;
/** The number of latest events that stay whole. */
export const WHOLE_EVENTS_MAX = 20_000;

export interface LogView {
  events: readonly JournalEvent[];
  /** The timeline of all events: one object that is updated in place. `version` changes with it. */
  timeline: ExecutionTimeline;
  version: number;
  status: ExecutionStatus;
  connection: Connection;
  /** True once the existing journal is loaded. */
  isRead: boolean;
  error: ApiError | null;
  /** Live text and calls by step. It has its own subscribers; its changes do not change `version`. */
  live: LiveOutput;
}

type Listener = () => void;

export class ExecutionLog {
  private readonly events: JournalEvent[] = [];
  private readonly timeline = emptyTimeline();
  private readonly live = new LiveOutput();
  private readonly listeners = new Set<Listener>();
  private readonly abort = new AbortController();
  private unsubscribers: Listener[] = [];
  private last: string | null = null;
  private summarized = 0;
  private isReadRequested = false;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private view: LogView = {
    events: this.events,
    timeline: this.timeline,
    version: 0,
    status: "pending",
    connection: "open",
    isRead: false,
    error: null,
    live: this.live,
  };

  constructor(
    private readonly execution: string,
    private readonly wholeEventsMax = WHOLE_EVENTS_MAX,
  ) {}

  readonly subscribe = (listener: Listener): Listener => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): LogView => this.view;

  async run(): Promise<void> {
    try {
      await this.read();
      if (this.abort.signal.aborted) return;
      this.updateView({ isRead: true });
      this.follow();
    } catch (why) {
      if (this.abort.signal.aborted) return;
      if (why instanceof ApiError && why.isUnreachable) return this.retryLater();
      this.updateView({ error: why as ApiError, isRead: true });
    }
  }

  close(): void {
    this.abort.abort();
    this.live.close();
    for (const leave of this.unsubscribers) leave();
    if (this.timer !== null) clearTimeout(this.timer);
  }

  /** Load new events soon; calls in quick succession share one request. */
  readSoon(): void {
    this.isReadRequested = true;
    this.timer ??= setTimeout(async () => {
      try {
        while (this.isReadRequested && !this.abort.signal.aborted) {
          this.isReadRequested = false;
          await this.read();
        }
      } catch {
        // The stream reconnects and triggers the next load.
      } finally {
        this.timer = null;
      }
    }, DEBOUNCE_MS);
  }

  /** The server became unreachable while a long journal was loading: keep the loaded events and retry. */
  private retryLater(): void {
    this.timer = setTimeout(() => {
      this.timer = null;
      void this.run();
    }, 1_000);
  }

  private follow(): void {
    const mine = `"${this.execution}"`;
    const streams = sharedStreams();
    this.unsubscribers = [
      streams.subscribe(BOARD, {
        onEvent: ({ data, event }) => {
          if (data.includes(mine) || event === "workflow.executions.reset") this.readSoon();
        },
        onConnection: (connection) => {
          this.updateView({ connection });
          if (connection === "open") this.readSoon();
        },
        onRefused: (error) => this.updateView({ error }),
      }),
    ];
    this.followLive();
  }

  /** Follow the live stream of an execution that has not ended. If an ended execution is resumed, the board reports
   * it. */
  private followLive(): void {
    if (this.unsubscribers.length !== 1 || ENDED.has(this.view.status)) return;
    const leave = sharedStreams().subscribe(`${executionPath(this.execution)}/stream?from=now`, {
      onEvent: (message) => this.receive(message),
      onConnection: (connection) => {
        if (connection === "open") this.live.clearText();
        if (connection !== "over") return this.readSoon();
        leave();
        this.unsubscribers = this.unsubscribers.filter((one) => one !== leave);
        this.readSoon();
      },
    });
    this.unsubscribers.push(leave);
  }

  private async read(): Promise<void> {
    for (;;) {
      const path = `${executionPath(this.execution)}/events${query({ after: this.last, limit: PAGE })}`;
      const page = await apiRequest<EventPage>(path, { signal: this.abort.signal });
      const retryLater = new Set<string>();
      for (const event of page.events) {
        this.events.push(event);
        applyEvent(this.timeline, event);
        if (event.kind === "step_failed" && event.final === false) retryLater.add(String(event.step));
      }
      this.last = page.last ?? this.last;
      this.live.drop((step) => retryLater.has(step) || this.isOver(step));
      this.summarizeOld();
      this.updateView({ status: page.status });
      this.followLive();
      if (page.events.length < PAGE) return;
    }
  }

  private isOver(step: string): boolean {
    const known = this.timeline.steps.get(step);
    return known !== undefined && isOver(known.status);
  }

  private summarizeOld(): void {
    for (; this.summarized < this.events.length - this.wholeEventsMax; this.summarized++) {
      this.events[this.summarized] = summarize(this.timeline, this.events[this.summarized] as JournalEvent);
    }
  }

  private receive(message: StreamMessage): void {
    if (message.event !== "workflow.node.delta") this.readSoon();
    else this.live.receive(message.data);
  }

  private updateView(change: Partial<LogView>): void {
    this.view = { ...this.view, ...change, version: this.view.version + 1 };
    for (const listener of this.listeners) listener();
  }
}

export function useExecutionLog(execution: string): LogView & { refresh: () => void } {
  const log = useMemo(() => new ExecutionLog(execution), [execution]);
  useEffect(() => {
    void log.run();
    return () => log.close();
  }, [log]);
  const view = useSyncExternalStore(log.subscribe, log.snapshot);
  return { ...view, refresh: () => log.readSoon() };
}
