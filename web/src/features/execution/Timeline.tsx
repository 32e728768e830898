/** What ran when: a lane for each step, in the order they began; only lanes in sight are drawn. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { span } from "@/components/instants";
import { StatusIcon } from "@/components/Status";
import type { Span, StepStory, Story } from "./story";

const LANE = 26;
const COLOURS: Record<Span["status"], string> = {
  pending: "var(--idle)",
  running: "var(--running)",
  waiting: "var(--waiting)",
  done: "var(--done)",
  passed: "var(--done)",
  failed: "var(--failed)",
  cancelled: "var(--idle)",
};

export function Timeline(props: {
  story: Story;
  isLive: boolean;
  picked: string | null;
  onPick: (node: string) => void;
}) {
  const { t } = useTranslation();
  const { story } = props;
  const now = useNow(props.isLive);
  const box = useRef<HTMLDivElement>(null);
  const lanes = useVirtualizer({
    count: story.order.length,
    getScrollElement: () => box.current,
    estimateSize: () => LANE,
    overscan: 12,
  });
  const to = props.isLive ? Math.max(story.to, now) : story.to;
  const length = Math.max(to - story.from, 0.001);
  if (story.order.length === 0) return <p className="p-4 text-ink-faint">{t("execution.nothing")}</p>;
  return (
    <div ref={box} className="h-full overflow-auto">
      <ul style={{ height: lanes.getTotalSize() }} className="relative" aria-label={t("execution.timeline")}>
        {lanes.getVirtualItems().map((item) => {
          const step = story.steps.get(story.order[item.index] as string) as StepStory;
          return (
            <li
              key={step.step}
              style={{ height: LANE, transform: `translateY(${item.start}px)` }}
              className={`absolute inset-x-0 top-0 flex items-center ${step.node === props.picked ? "bg-accent-soft" : "hover:bg-sunken"}`}
            >
              <button
                type="button"
                onClick={() => props.onPick(step.node)}
                className="flex h-full w-52 shrink-0 items-center gap-1.5 px-3 text-left text-xs"
                style={{ paddingLeft: 12 + Math.min(step.scope.length, 6) * 12 }}
                title={step.step}
              >
                <StatusIcon status={step.status} className="size-3.5" />
                <span className="truncate">{labelOf(step)}</span>
              </button>
              <span className="relative mr-4 h-full min-w-0 flex-1">
                {step.spans.map((one) => (
                  <span
                    key={`${one.from} ${one.status}`}
                    className="absolute top-1.5 bottom-1.5 min-w-0.5 rounded-sm"
                    style={{
                      left: `${((one.from - story.from) / length) * 100}%`,
                      width: `${(((one.to ?? to) - one.from) / length) * 100}%`,
                      background: COLOURS[one.status],
                      opacity: one.status === "waiting" || one.status === "pending" ? 0.45 : 0.85,
                    }}
                    title={`${labelOf(step)}: ${t(`status.${one.status}`)}, ${span((one.to ?? to) - one.from)}`}
                  />
                ))}
              </span>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** The branch and the visit with the node's name: as in `write [2]`, `check #3`. */
function labelOf(step: StepStory): string {
  const branch = step.scope.map((part) => `[${part.branch}]`).join("");
  const visit = /#(\d+)$/.exec(step.step)?.[0] ?? "";
  return [step.node, branch, visit].filter(Boolean).join(" ");
}

function useNow(isLive: boolean): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => setNow(Date.now() / 1000), 500);
    return () => clearInterval(timer);
  }, [isLive]);
  return now;
}
