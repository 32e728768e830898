/** What ran when: a lane for each step, under the branch it ran in; only lanes in sight are drawn. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight, Minus, Plus, RotateCcw } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { now } from "@/clock";
import { IconButton } from "@/components/IconButton";
import { StatusIcon } from "@/components/Status";
import { span } from "@/components/times";
import { branchNumber, type NameOf, useNodeName } from "@/graph/model/nodeNames";
import { type Lane, Lanes, ticksOf } from "./lanes";
import type { ExecutionTimeline, Span, StepRecord } from "./timelineModel";

const LANE = 26;
const HEAD = 24;
/** What a word of the scale takes. */
const MARK = 72;
/** How wide the column of names is, with the margin at the other side: less on a phone. */
const names = (width: number) => (width < 640 ? 160 : 224);
const ZOOM_MAX = 512;
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
  story: ExecutionTimeline;
  isLive: boolean;
  picked: string | null;
  onPick: (node: string, step: string) => void;
}) {
  const { t } = useTranslation();
  const { story } = props;
  const called = useNodeName();
  const at = useNow(props.isLive);
  const box = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const known = useMemo(() => new Lanes(), []);
  const lanes = useMemo(() => known.of(story, toggled), [known, story, toggled]);
  const rows = useVirtualizer({
    count: lanes.length,
    getScrollElement: () => box.current,
    estimateSize: () => LANE,
    overscan: 12,
    scrollMargin: HEAD,
  });
  const width = rows.scrollRect?.width ?? 0;
  const marks = Math.max(1, Math.min(8, Math.floor((width - names(width)) / MARK)));
  const to = props.isLive ? Math.max(story.to, at) : story.to;
  const length = Math.max(to - story.from, 0.001);
  const place = (from: number, end: number | null) => ({
    left: `${((from - story.from) / length) * 100}%`,
    width: `${(((end ?? to) - from) / length) * 100}%`,
  });
  if (story.order.length === 0) return <p className="p-4 text-ink-faint">{t("execution.nothing")}</p>;
  return (
    <div className="relative h-full [--names:13rem] max-sm:[--names:9rem]">
      <div ref={box} className="h-full overflow-auto">
        <div style={{ width: `calc(var(--names) + (100% - var(--names) - 1rem) * ${zoom})`, minWidth: "100%" }}>
          <Scale length={length} zoom={zoom} marks={marks} />
          <ul style={{ height: rows.getTotalSize() }} className="relative" aria-label={t("execution.timeline")}>
            {rows.getVirtualItems().map((item) => {
              const lane = lanes[item.index] as Lane;
              const isPicked = lane.kind === "step" && lane.step.node === props.picked;
              return (
                <li
                  key={lane.key}
                  style={{ height: LANE, transform: `translateY(${item.start - HEAD}px)` }}
                  className={`absolute inset-x-0 top-0 flex items-center ${isPicked ? "bg-accent-soft" : "hover:bg-sunken"}`}
                >
                  {lane.kind === "step" ? (
                    <StepLane lane={lane} called={called} place={place} to={to} onPick={props.onPick} />
                  ) : (
                    <BranchLane
                      lane={lane}
                      called={called}
                      place={place}
                      onToggle={() => setToggled(new Map(toggled).set(lane.key, !lane.isOpen))}
                    />
                  )}
                </li>
              );
            })}
          </ul>
        </div>
      </div>
      <ZoomBar zoom={zoom} onZoom={setZoom} />
    </div>
  );
}

/** The scale of times above the lanes. */
function Scale({ length, zoom, marks }: { length: number; zoom: number; marks: number }) {
  return (
    <div
      className="sticky top-0 z-10 flex border-b border-line bg-surface text-[11px] text-ink-faint"
      style={{ height: HEAD }}
    >
      <div className="sticky left-0 z-10 w-(--names) shrink-0 bg-surface" />
      <div className="relative mr-4 min-w-0 flex-1" aria-hidden>
        {ticksOf(length, Math.min(marks * zoom, 150)).map((at) => (
          <span
            key={at}
            className="absolute top-1 h-4 border-l border-line pl-1 whitespace-nowrap"
            style={{ left: `${(at / length) * 100}%` }}
          >
            {/* At the right edge there is no room for words. */}
            {at / length > 1 - 0.6 / marks / zoom ? "" : at === 0 ? "0" : span(at)}
          </span>
        ))}
      </div>
    </div>
  );
}

/** Position and width of a stretch of time, as CSS. */
type Place = (from: number, end: number | null) => { left: string; width: string };

function StepLane(props: {
  lane: Lane & { kind: "step" };
  called: NameOf;
  place: Place;
  to: number;
  onPick: (node: string, step: string) => void;
}) {
  const { t } = useTranslation();
  const { lane, called, place, to } = props;
  const { step } = lane;
  return (
    <>
      <Name depth={lane.depth} title={step.step} onPick={() => props.onPick(step.node, lane.key)}>
        <StatusIcon status={step.status} className="size-3.5" />
        <span className="sr-only">{t(`status.${step.status}`)}</span>
        <span className="truncate">{labelOf(step, called)}</span>
      </Name>
      <span className="relative mr-4 h-full min-w-0 flex-1">
        {step.spans.map((one) => (
          <span
            key={`${one.from} ${one.status}`}
            className="absolute top-1.5 bottom-1.5 min-w-0.5 rounded-sm"
            style={{
              ...place(one.from, one.to),
              background: COLOURS[one.status],
              opacity: one.status === "waiting" || one.status === "pending" ? 0.45 : 0.85,
            }}
            title={`${labelOf(step, called)}: ${t(`status.${one.status}`)}, ${span((one.to ?? to) - one.from)}`}
          />
        ))}
      </span>
    </>
  );
}

function BranchLane(props: {
  lane: Exclude<Lane, { kind: "step" }>;
  called: NameOf;
  place: Place;
  onToggle: () => void;
}) {
  const { lane, called } = props;
  const background = lane.failed ? "var(--failed)" : lane.to === null ? "var(--running)" : "var(--idle)";
  return (
    <>
      <Name depth={lane.depth} title={lane.key} isOpen={lane.isOpen} onPick={props.onToggle}>
        {lane.isOpen ? <ChevronDown className="size-3.5" /> : <ChevronRight className="size-3.5" />}
        <span className="truncate font-medium">{`${called(lane.node)} [${branchNumber(lane.branch)}]`}</span>
        <span className="text-ink-faint tabular-nums">{lane.steps}</span>
        {lane.failed ? <span className="text-failed tabular-nums">✕{lane.failed}</span> : null}
      </Name>
      <span className="relative mr-4 h-full min-w-0 flex-1">
        <span
          className="absolute top-2.5 bottom-2.5 min-w-0.5 rounded-full"
          style={{ ...props.place(lane.from, lane.to), background }}
        />
      </span>
    </>
  );
}

function ZoomBar({ zoom, onZoom }: { zoom: number; onZoom: (zoom: number) => void }) {
  const { t } = useTranslation();
  return (
    <div
      role="toolbar"
      aria-label={t("execution.timeline")}
      className="absolute right-4 bottom-2 z-20 flex rounded-md border border-line bg-raised p-0.5 shadow"
    >
      <IconButton
        icon={Minus}
        name={t("execution.zoomOut")}
        onClick={() => onZoom(Math.max(1, zoom / 2))}
        disabled={zoom === 1}
      />
      <IconButton icon={RotateCcw} name={t("execution.zoomFit")} onClick={() => onZoom(1)} disabled={zoom === 1} />
      <IconButton
        icon={Plus}
        name={t("execution.zoomIn")}
        onClick={() => onZoom(zoom * 2)}
        disabled={zoom >= ZOOM_MAX}
      />
    </div>
  );
}

function Name(props: {
  depth: number;
  title: string;
  isOpen?: boolean;
  onPick: () => void;
  children: React.ReactNode;
}) {
  return (
    <button
      type="button"
      onClick={props.onPick}
      {...(props.isOpen === undefined ? {} : { "aria-expanded": props.isOpen })}
      className="sticky left-0 z-[5] flex h-full w-(--names) shrink-0 items-center gap-1.5 bg-inherit px-3 text-left text-xs"
      style={{ paddingLeft: 12 + Math.min(props.depth, 6) * 12 }}
      title={props.title}
    >
      {props.children}
    </button>
  );
}

/** The branch and the visit with the node's name: as in `write [2]`, `check #3`. */
function labelOf(step: StepRecord, called: NameOf): string {
  const visit = /#(\d+)$/.exec(step.step)?.[0] ?? "";
  return [called(step.node), visit].filter(Boolean).join(" ");
}

function useNow(isLive: boolean): number {
  const [at, setAt] = useState(now);
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => setAt(now()), 500);
    return () => clearInterval(timer);
  }, [isLive]);
  return at;
}
