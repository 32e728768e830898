/** The journal of one execution in the page: read page by page, then followed live.

    board, stream ──"there is news"──▶ read what is behind the last event ──▶ events ──▶ story

  What is read by its place is read once, whatever the streams lose or repeat. Of a long journal only the latest events
  are kept whole; of the older ones what tells their place in the story, the rest is read again where somebody looks.
*/
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { ApiError, ask, query } from "@/api/http";
import { executionPath } from "@/api/queries";
import { ENDED, type EventPage, type ExecutionStatus, type JournalEvent } from "@/api/views";
import type { Connection, StreamMessage } from "@/stream/follow";
import { BOARD, sharedStreams } from "@/stream/subscribe";
import { summarize } from "./eventSummary";
import { LiveOutput } from "./live";
import { applyEvent, type ExecutionTimeline, emptyTimeline, isOver } from "./timelineModel";

const PAGE = 5_000;
const GATHERS_MS = 80;
/** So many events are kept whole. */
export const WHOLE_MAX = 20_000;

export interface LogView {
  events: readonly JournalEvent[];
  /** The story of all events; the same object, told further: `version` says that it changed. */
  story: ExecutionTimeline;
  version: number;
  status: ExecutionStatus;
  connection: Connection;
  /** Everything that was there is read. */
  isRead: boolean;
  error: ApiError | null;
  /** What is said and called now, by step; it tells by itself what is new, and the log does not change by it. */
  live: LiveOutput;
}

type Listener = () => void;

export class ExecutionLog {
  private readonly events: JournalEvent[] = [];
  private readonly story = emptyTimeline();
  private readonly live = new LiveOutput();
  private readonly listeners = new Set<Listener>();
  private readonly stop = new AbortController();
  private leaves: Listener[] = [];
  private last: string | null = null;
  private lightened = 0;
  private asked = false;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private view: LogView = {
    events: this.events,
    story: this.story,
    version: 0,
    status: "pending",
    connection: "open",
    isRead: false,
    error: null,
    live: this.live,
  };

  constructor(
    private readonly execution: string,
    private readonly wholeMax = WHOLE_MAX,
  ) {}

  readonly subscribe = (listener: Listener): Listener => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): LogView => this.view;

  async run(): Promise<void> {
    try {
      await this.read();
      if (this.stop.signal.aborted) return;
      this.show({ isRead: true });
      this.listen();
    } catch (why) {
      if (this.stop.signal.aborted) return;
      if (why instanceof ApiError && why.isAway) return this.again();
      this.show({ error: why as ApiError, isRead: true });
    }
  }

  close(): void {
    this.stop.abort();
    this.live.close();
    for (const leave of this.leaves) leave();
    if (this.timer !== null) clearTimeout(this.timer);
  }

  /** Many events at once are one look. */
  readSoon(): void {
    this.asked = true;
    this.timer ??= setTimeout(async () => {
      try {
        while (this.asked && !this.stop.signal.aborted) {
          this.asked = false;
          await this.read();
        }
      } catch {
        // The stream comes back and asks again.
      } finally {
        this.timer = null;
      }
    }, GATHERS_MS);
  }

  /** The server went away in the middle of a long journal: what was read stays. */
  private again(): void {
    this.timer = setTimeout(() => {
      this.timer = null;
      void this.run();
    }, 1_000);
  }

  private listen(): void {
    const mine = `"${this.execution}"`;
    const streams = sharedStreams();
    this.leaves = [
      streams.subscribe(BOARD, {
        onEvent: ({ data, event }) => {
          if (data.includes(mine) || event === "workflow.executions.reset") this.readSoon();
        },
        onConnection: (connection) => {
          this.show({ connection });
          if (connection === "open") this.readSoon();
        },
        onRefused: (error) => this.show({ error }),
      }),
    ];
    this.listenClosely();
  }

  /** To what is live. One that has ended may be taken up again: the board says so. */
  private listenClosely(): void {
    if (this.leaves.length !== 1 || ENDED.has(this.view.status)) return;
    const leave = sharedStreams().subscribe(`${executionPath(this.execution)}/stream?from=now`, {
      onEvent: (told) => this.takeIn(told),
      onConnection: (connection) => {
        if (connection === "open") this.live.forgetSaid();
        if (connection !== "over") return this.readSoon();
        leave();
        this.leaves = this.leaves.filter((one) => one !== leave);
        this.readSoon();
      },
    });
    this.leaves.push(leave);
  }

  private async read(): Promise<void> {
    for (;;) {
      const path = `${executionPath(this.execution)}/events${query({ after: this.last, limit: PAGE })}`;
      const page = await ask<EventPage>(path, { signal: this.stop.signal });
      const again = new Set<string>();
      for (const event of page.events) {
        this.events.push(event);
        applyEvent(this.story, event);
        if (event.kind === "step_failed" && event.final === false) again.add(String(event.step));
      }
      this.last = page.last ?? this.last;
      this.live.forget((step) => again.has(step) || this.isOver(step));
      this.lighten();
      this.show({ status: page.status });
      this.listenClosely();
      if (page.events.length < PAGE) return;
    }
  }

  private isOver(step: string): boolean {
    const known = this.story.steps.get(step);
    return known !== undefined && isOver(known.status);
  }

  private lighten(): void {
    for (; this.lightened < this.events.length - this.wholeMax; this.lightened++) {
      this.events[this.lightened] = summarize(this.story, this.events[this.lightened] as JournalEvent);
    }
  }

  private takeIn(told: StreamMessage): void {
    if (told.event !== "workflow.node.delta") this.readSoon();
    else this.live.hear(told.data);
  }

  private show(change: Partial<LogView>): void {
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
