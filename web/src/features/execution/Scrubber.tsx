import { useTranslation } from "react-i18next";
import type { JournalEvent } from "@/api/views";
import { Button } from "@/components/Button";
import { moment } from "@/components/instants";

/** A slider over the journal: everything above and below shows the execution as it was then. Nothing is changed by it. */
export function Scrubber(props: {
  events: readonly JournalEvent[];
  upTo: number | null;
  onMove: (upTo: number | null) => void;
}) {
  const { t, i18n } = useTranslation();
  const all = props.events.length;
  const at = props.upTo ?? all;
  const event = props.events[at - 1];
  return (
    <div className="flex h-10 shrink-0 items-center gap-3 border-t border-line bg-surface px-4 text-xs text-ink-soft">
      <label htmlFor="scrubber">{t("execution.travel")}</label>
      <input
        id="scrubber"
        type="range"
        min={1}
        max={Math.max(all, 1)}
        value={at}
        disabled={all === 0}
        onChange={(change) => {
          const next = Number(change.target.value);
          props.onMove(next >= all ? null : next);
        }}
        aria-valuetext={event ? `${at}/${all} ${event.kind} ${event.node ?? ""}` : ""}
        className="min-w-0 flex-1 accent-[var(--accent)]"
      />
      <span className="w-24 text-right tabular-nums">
        {at} / {all}
      </span>
      <span className="w-56 truncate max-md:hidden" title={event ? moment(event.at, i18n.language) : ""}>
        {event ? `${event.kind} ${event.node ?? ""}` : ""}
      </span>
      {props.upTo === null ? null : <Button onClick={() => props.onMove(null)}>{t("execution.now")}</Button>}
    </div>
  );
}
