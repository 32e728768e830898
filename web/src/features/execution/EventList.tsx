/** The journal itself, event by event; only what is in sight is drawn. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JournalEvent } from "@/api/views";

const ROW = 24;

export function EventList(props: {
  events: readonly JournalEvent[];
  upTo: number | null;
  onPick: (node: string) => void;
}) {
  const { t, i18n } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<JournalEvent | null>(null);
  const shown = props.upTo ?? props.events.length;
  const rows = useVirtualizer({
    count: shown,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 20,
  });
  return (
    <div className="flex h-full">
      <div ref={box} className="h-full min-w-0 flex-1 overflow-auto">
        <ul style={{ height: rows.getTotalSize() }} className="relative" aria-label={t("execution.events")}>
          {rows.getVirtualItems().map((item) => {
            const event = props.events[item.index] as JournalEvent;
            return (
              <li
                key={`${event.seq}.${event.n}`}
                style={{ height: ROW, transform: `translateY(${item.start}px)` }}
                className="absolute inset-x-0 top-0"
              >
                <button
                  type="button"
                  onClick={() => {
                    setOpen(event);
                    if (event.node) props.onPick(event.node);
                  }}
                  className={`flex h-full w-full items-center gap-3 px-3 text-left font-mono text-xs hover:bg-sunken ${open === event ? "bg-accent-soft" : ""}`}
                >
                  <span className="w-14 text-right text-ink-faint tabular-nums">
                    {event.seq}.{event.n}
                  </span>
                  <span className="w-24 text-ink-faint tabular-nums">
                    {new Date(event.at * 1000).toLocaleTimeString(i18n.language, { hour12: false })}
                  </span>
                  <span className="w-40 truncate">{event.kind}</span>
                  <span className="truncate text-ink-soft">{event.step ?? event.node ?? ""}</span>
                </button>
              </li>
            );
          })}
        </ul>
      </div>
      {open ? (
        <pre className="w-1/2 overflow-auto border-l border-line p-3 font-mono text-xs whitespace-pre-wrap">
          {JSON.stringify(open, null, 2)}
        </pre>
      ) : null}
    </div>
  );
}
