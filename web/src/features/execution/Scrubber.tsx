import { Pause, Play, SkipBack, SkipForward } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JournalEvent } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { moment } from "@/components/times";
import { useEventWords } from "./eventWords";

const FRAME_MS = 120;
/** Playback takes this many frames, whatever the length of the journal. */
const FRAMES = 200;

/** A slider over the journal: the page shows the execution as it was at the selected event. It changes nothing. */
export function Scrubber(props: {
  events: readonly JournalEvent[];
  upTo: number | null;
  onMove: (upTo: number | null) => void;
}) {
  const { t, i18n } = useTranslation();
  const all = props.events.length;
  const at = props.upTo ?? all;
  const words = useEventWords();
  const event = props.events[at - 1];
  const eventText = event ? Object.values(words(event)).filter(Boolean).join(" · ") : "";
  const [playing, setPlaying] = useState(false);
  const { onMove } = props;
  const go = (to: number) => onMove(to >= all ? null : Math.max(1, to));
  useEffect(() => {
    if (!playing) return;
    const timer = setTimeout(() => {
      const next = at + Math.max(1, Math.floor(all / FRAMES));
      if (next >= all) setPlaying(false);
      onMove(next >= all ? null : next);
    }, FRAME_MS);
    return () => clearTimeout(timer);
  }, [playing, at, all, onMove]);
  const play = () => {
    if (!playing && props.upTo === null) onMove(1);
    setPlaying(!playing);
  };
  return (
    <div className="flex h-10 shrink-0 items-center gap-1 border-t border-line bg-surface px-3 text-xs text-ink-soft">
      <IconButton
        icon={playing ? Pause : Play}
        name={t(playing ? "execution.stopPlaying" : "execution.play")}
        onClick={play}
        disabled={all < 2}
      />
      <IconButton icon={SkipBack} name={t("execution.stepBack")} onClick={() => go(at - 1)} disabled={at <= 1} />
      <IconButton
        icon={SkipForward}
        name={t("execution.stepOn")}
        onClick={() => go(at + 1)}
        disabled={props.upTo === null}
      />
      <label htmlFor="scrubber" className="mx-1 max-md:sr-only">
        {t("execution.travel")}
      </label>
      <input
        id="scrubber"
        type="range"
        min={1}
        max={Math.max(all, 1)}
        value={at}
        disabled={all === 0}
        onChange={(change) => {
          setPlaying(false);
          go(Number(change.target.value));
        }}
        aria-valuetext={event ? `${at}/${all} ${eventText}` : ""}
        className="h-6 min-w-0 flex-1"
      />
      <span
        className="shrink-0 text-right whitespace-nowrap tabular-nums"
        style={{ minWidth: `${2 * String(all).length + 3}ch` }}
      >
        {at} / {all}
      </span>
      <span className="ml-3 w-60 truncate max-lg:hidden" title={event ? moment(event.at, i18n.language) : ""}>
        <bdi>{eventText}</bdi>
      </span>
      {props.upTo === null ? null : <Button onClick={() => props.onMove(null)}>{t("execution.now")}</Button>}
    </div>
  );
}
