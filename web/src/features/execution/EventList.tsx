/** The journal as a list of events: searchable, follows new events at its end, and renders only the visible rows. */
import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDownToLine, ArrowUpToLine, History } from "lucide-react";
import { useDeferredValue, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JournalEvent } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { SearchBox } from "@/components/SearchBox";
import { ErrorMessage } from "@/components/StatusMessage";
import { reloadEvents } from "./eventReload";
import { EventSearch } from "./eventSearch";
import { type EventWords, useEventWords } from "./eventWords";

const ROW = 24;

export function EventList(props: {
  execution: string;
  events: readonly JournalEvent[];
  upTo: number | null;
  onPick: (node: string, step: string | null) => void;
  onTravel: (upTo: number) => void;
}) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<number | null>(null);
  const [typed, setTyped] = useState("");
  const searchText = useDeferredValue(typed.trim().toLowerCase());
  const all = props.upTo ?? props.events.length;
  const words = useEventWords();
  const search = useMemo(() => new EventSearch((one) => Object.values(words(one)).join(" ")), [words]);
  const found = useMemo(
    () => (searchText ? search.matches(props.events, all, searchText) : null),
    [search, props.events, all, searchText],
  );
  const count = found?.length ?? all;
  const rows = useVirtualizer({ count, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 20 });
  const go = useStickToEnd(box, count);
  const event = open === null ? undefined : props.events[open];
  return (
    <div className="flex h-full flex-col">
      <div className="flex items-center gap-2 border-b border-line px-3 py-1 text-xs text-ink-soft">
        <SearchBox value={typed} onChange={setTyped} label={t("execution.searchEvents")} />
        <span role="status" className="ml-auto whitespace-nowrap tabular-nums">
          {found === null
            ? t("execution.eventCount", { count: all })
            : t("execution.eventsFound", { count: found.length, all })}
        </span>
        <IconButton icon={ArrowUpToLine} name={t("execution.firstEvent")} onClick={() => go("begin")} />
        <IconButton icon={ArrowDownToLine} name={t("execution.latestEvent")} onClick={() => go("end")} />
      </div>
      <div className="flex min-h-0 flex-1">
        <div ref={box} className="h-full min-w-0 flex-1 overflow-auto">
          {count === 0 ? (
            <p className="p-3 text-ink-faint">{t(found ? "execution.noEvent" : "execution.nothing")}</p>
          ) : null}
          <ul style={{ height: rows.getTotalSize() }} className="relative" aria-label={t("execution.events")}>
            {rows.getVirtualItems().map((item) => {
              const at = found?.[item.index] ?? item.index;
              const one = props.events[at] as JournalEvent;
              return (
                <li
                  key={`${one.seq}.${one.n}`}
                  aria-setsize={count}
                  aria-posinset={item.index + 1}
                  style={{ height: ROW, transform: `translateY(${item.start}px)` }}
                  className="absolute inset-x-0 top-0"
                >
                  <EventRow
                    event={one}
                    words={words(one)}
                    isOpen={open === at}
                    onOpen={() => {
                      setOpen(at);
                      if (one.node) props.onPick(one.node, one.step ?? null);
                    }}
                  />
                </li>
              );
            })}
          </ul>
        </div>
        {event && open !== null ? (
          <EventDetail
            key={`${event.seq}.${event.n}`}
            execution={props.execution}
            event={event}
            onTravel={() => props.onTravel(open + 1)}
          />
        ) : null}
      </div>
    </div>
  );
}

/** Keep the list scrolled to its end while events arrive; after the user scrolls up, keep the position. */
function useStickToEnd(box: React.RefObject<HTMLDivElement | null>, count: number): (to: "begin" | "end") => void {
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const at = box.current;
    if (!at) return;
    const updateIsAtEnd = () => {
      isAtEnd.current = at.scrollTop + at.clientHeight >= at.scrollHeight - ROW;
    };
    at.addEventListener("scroll", updateIsAtEnd, { passive: true });
    return () => at.removeEventListener("scroll", updateIsAtEnd);
  }, [box]);
  useLayoutEffect(() => {
    if (count > 0 && isAtEnd.current) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [box, count]);
  return (to) => box.current?.scrollTo({ top: to === "begin" ? 0 : box.current.scrollHeight });
}

function EventRow(props: { event: JournalEvent; words: EventWords; isOpen: boolean; onOpen: () => void }) {
  const { i18n } = useTranslation();
  const { event, words, isOpen, onOpen } = props;
  return (
    <button
      type="button"
      onClick={onOpen}
      aria-pressed={isOpen}
      className={`flex h-full w-full items-center gap-3 px-3 text-left text-xs hover:bg-sunken ${isOpen ? "bg-accent-soft" : ""}`}
    >
      <span className="w-16 shrink-0 text-right text-ink-faint tabular-nums">
        {event.seq}.{event.n}
      </span>
      <span className="w-16 shrink-0 text-ink-faint tabular-nums">
        {new Date(event.at * 1000).toLocaleTimeString(i18n.language, { hour12: false })}
      </span>
      <span className="w-52 min-w-24 truncate">{words.what}</span>
      <span className="min-w-24 flex-1 truncate text-ink-soft" title={event.step ?? event.node}>
        <bdi>{words.where}</bdi>
      </span>
    </button>
  );
}

/** One event as JSON. Old events are in memory only as summaries: load the full event again. */
function EventDetail(props: { execution: string; event: JournalEvent; onTravel: () => void }) {
  const { execution, event } = props;
  const { t } = useTranslation();
  const isSummary = event.isSummary === true;
  const read = useQuery({
    queryKey: ["execution", execution, "event", event.seq, event.n],
    queryFn: async () => (await reloadEvents(execution, [event.seq, event.n]))[0] ?? event,
    enabled: isSummary,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const shown = isSummary ? read.data : event;
  return (
    <div className="w-1/2 overflow-auto border-l border-line p-3 max-sm:w-3/5">
      <Button onClick={props.onTravel} className="mb-2 max-w-full">
        <History className="size-4" /> {t("execution.travelHere")}
      </Button>
      {read.isError ? <ErrorMessage error={read.error} onRetry={() => void read.refetch()} /> : null}
      {isSummary && !shown && !read.isError ? <p role="status">{t("execution.readingAgain")}</p> : null}
      {shown ? (
        <pre className="font-mono text-xs break-words whitespace-pre-wrap">{JSON.stringify(shown, null, 2)}</pre>
      ) : null}
    </div>
  );
}
