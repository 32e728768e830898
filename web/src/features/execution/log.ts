/** The journal of one execution in the page: read page by page, then followed live. */
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { type ApiError, ask, query } from "@/api/http";
import { executionPath } from "@/api/queries";
import { ENDED, type EventPage, type ExecutionStatus, type JournalEvent } from "@/api/views";
import { type Connection, follow } from "@/stream/follow";
import { emptyStory, type Story, tell } from "./story";

const PAGE = 1000;
const GATHERS_MS = 80;

export interface LogView {
  events: readonly JournalEvent[];
  /** The story of all events; the same object, told further: `version` says that it changed. */
  story: Story;
  version: number;
  status: ExecutionStatus;
  connection: Connection;
  isRead: boolean;
  error: ApiError | null;
  /** What models are saying now, by step. */
  live: ReadonlyMap<string, string>;
}

export class ExecutionLog {
  private readonly events: JournalEvent[] = [];
  private readonly story = emptyStory();
  private readonly live = new Map<string, string>();
  private readonly listeners = new Set<() => void>();
  private readonly stop = new AbortController();
  private last: string | null = null;
  private asked = false;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private view: LogView = {
    events: this.events,
    story: this.story,
    version: 0,
    status: "pending",
    connection: "away",
    isRead: false,
    error: null,
    live: this.live,
  };

  constructor(private readonly execution: string) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): LogView => this.view;

  async run(): Promise<void> {
    try {
      await this.read();
      this.show({ isRead: true });
      if (ENDED.has(this.view.status)) return this.show({ connection: "over" });
      await follow(`${executionPath(this.execution)}/stream`, {
        after: this.last,
        signal: this.stop.signal,
        onConnection: (connection) => {
          this.show({ connection });
          if (connection !== "away") this.readSoon();
        },
        onEvent: (told) => {
          if (told.event === "workflow.node.delta") this.hear(told.data);
          else this.readSoon();
        },
      });
    } catch (why) {
      if (!this.stop.signal.aborted) this.show({ error: why as ApiError, isRead: true });
    }
  }

  close(): void {
    this.stop.abort();
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

  private async read(): Promise<void> {
    for (;;) {
      const path = `${executionPath(this.execution)}/events${query({ after: this.last, limit: PAGE })}`;
      const page = await ask<EventPage>(path, { signal: this.stop.signal });
      for (const event of page.events) {
        this.events.push(event);
        tell(this.story, event);
        if (event.kind === "step_succeeded" || event.kind === "step_failed") this.live.delete(String(event.step));
      }
      this.last = page.last ?? this.last;
      this.show({ status: page.status });
      if (page.events.length < PAGE) return;
    }
  }

  private hear(data: string): void {
    const told = JSON.parse(data) as { step: string; delta: { text?: string } };
    if (typeof told.delta?.text !== "string") return;
    this.live.set(told.step, (this.live.get(told.step) ?? "") + told.delta.text);
    this.show({});
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
