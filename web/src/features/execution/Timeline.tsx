/** When each step ran: one lane for each step, under its branch. Only visible lanes are rendered. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight, Minus, Plus, RotateCcw } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { now } from "@/clock";
import { IconButton } from "@/components/IconButton";
import { StatusIcon } from "@/components/Status";
import { span } from "@/components/times";
import { branchNumber, type NameOf, useNodeName } from "@/graph/model/nodeNames";
import { type Lane, LaneBuilder, ticksOf } from "./lanes";
import type { ExecutionTimeline, Span, StepRecord } from "./timelineModel";

const LANE_HEIGHT = 26;
const AXIS_HEIGHT = 24;
/** Width of a label on the time axis, in pixels. */
const LABEL_WIDTH = 72;
/** Width of the column of names plus the opposite margin, in pixels: less on a phone. */
const namesWidth = (width: number) => (width < 640 ? 160 : 224);
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
  timeline: ExecutionTimeline;
  isLive: boolean;
  picked: string | null;
  onPick: (node: string, step: string) => void;
}) {
  const { t } = useTranslation();
  const { timeline } = props;
  const nodeName = useNodeName();
  const at = useNow(props.isLive);
  const box = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const laneBuilder = useMemo(() => new LaneBuilder(), []);
  const lanes = useMemo(() => laneBuilder.of(timeline, toggled), [laneBuilder, timeline, toggled]);
  const rows = useVirtualizer({
    count: lanes.length,
    getScrollElement: () => box.current,
    estimateSize: () => LANE_HEIGHT,
    overscan: 12,
    scrollMargin: AXIS_HEIGHT,
  });
  const width = rows.scrollRect?.width ?? 0;
  const marks = Math.max(1, Math.min(8, Math.floor((width - namesWidth(width)) / LABEL_WIDTH)));
  const to = props.isLive ? Math.max(timeline.to, at) : timeline.to;
  const length = Math.max(to - timeline.from, 0.001);
  const spanStyle = (from: number, end: number | null) => ({
    left: `${((from - timeline.from) / length) * 100}%`,
    width: `${(((end ?? to) - from) / length) * 100}%`,
  });
  if (timeline.order.length === 0) return <p className="p-4 text-ink-faint">{t("execution.nothing")}</p>;
  return (
    <div className="relative h-full [--names:13rem] max-sm:[--names:9rem]">
      <div ref={box} className="h-full overflow-auto">
        <div style={{ width: `calc(var(--names) + (100% - var(--names) - 1rem) * ${zoom})`, minWidth: "100%" }}>
          <TimeAxis length={length} zoom={zoom} marks={marks} />
          <ul style={{ height: rows.getTotalSize() }} className="relative" aria-label={t("execution.timeline")}>
            {rows.getVirtualItems().map((item) => {
              const lane = lanes[item.index] as Lane;
              const isPicked = lane.kind === "step" && lane.step.node === props.picked;
              return (
                <li
                  key={lane.key}
                  style={{ height: LANE_HEIGHT, transform: `translateY(${item.start - AXIS_HEIGHT}px)` }}
                  className={`absolute inset-x-0 top-0 flex items-center ${isPicked ? "bg-accent-soft" : "hover:bg-sunken"}`}
                >
                  {lane.kind === "step" ? (
                    <StepLane lane={lane} nodeName={nodeName} spanStyle={spanStyle} to={to} onPick={props.onPick} />
                  ) : (
                    <BranchLane
                      lane={lane}
                      nodeName={nodeName}
                      spanStyle={spanStyle}
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

/** The time axis above the lanes. */
function TimeAxis({ length, zoom, marks }: { length: number; zoom: number; marks: number }) {
  return (
    <div
      className="sticky top-0 z-10 flex border-b border-line bg-surface text-[11px] text-ink-faint"
      style={{ height: AXIS_HEIGHT }}
    >
      <div className="sticky left-0 z-10 w-(--names) shrink-0 bg-surface" />
      <div className="relative mr-4 min-w-0 flex-1" aria-hidden>
        {ticksOf(length, Math.min(marks * zoom, 150)).map((at) => (
          <span
            key={at}
            className="absolute top-1 h-4 border-l border-line pl-1 whitespace-nowrap"
            style={{ left: `${(at / length) * 100}%` }}
          >
            {/* A label would not fit at the right edge. */}
            {at / length > 1 - 0.6 / marks / zoom ? "" : at === 0 ? "0" : span(at)}
          </span>
        ))}
      </div>
    </div>
  );
}

/** Position and width of a time span, as CSS. */
type SpanStyle = (from: number, end: number | null) => { left: string; width: string };

function StepLane(props: {
  lane: Lane & { kind: "step" };
  nodeName: NameOf;
  spanStyle: SpanStyle;
  to: number;
  onPick: (node: string, step: string) => void;
}) {
  const { t } = useTranslation();
  const { lane, nodeName, spanStyle, to } = props;
  const { step } = lane;
  return (
    <>
      <LaneName depth={lane.depth} title={step.step} onPick={() => props.onPick(step.node, lane.key)}>
        <StatusIcon status={step.status} className="size-3.5" />
        <span className="sr-only">{t(`status.${step.status}`)}</span>
        <span className="truncate">{labelOf(step, nodeName)}</span>
      </LaneName>
      <span className="relative mr-4 h-full min-w-0 flex-1">
        {step.spans.map((one) => (
          <span
            key={`${one.from} ${one.status}`}
            className="absolute top-1.5 bottom-1.5 min-w-0.5 rounded-sm"
            style={{
              ...spanStyle(one.from, one.to),
              background: COLOURS[one.status],
              opacity: one.status === "waiting" || one.status === "pending" ? 0.45 : 0.85,
            }}
            title={`${labelOf(step, nodeName)}: ${t(`status.${one.status}`)}, ${span((one.to ?? to) - one.from)}`}
          />
        ))}
      </span>
    </>
  );
}

function BranchLane(props: {
  lane: Exclude<Lane, { kind: "step" }>;
  nodeName: NameOf;
  spanStyle: SpanStyle;
  onToggle: () => void;
}) {
  const { lane, nodeName } = props;
  const background = lane.failed ? "var(--failed)" : lane.to === null ? "var(--running)" : "var(--idle)";
  return (
    <>
      <LaneName depth={lane.depth} title={lane.key} isOpen={lane.isOpen} onPick={props.onToggle}>
        {lane.isOpen ? <ChevronDown className="size-3.5" /> : <ChevronRight className="size-3.5" />}
        <span className="truncate font-medium">{`${nodeName(lane.node)} [${branchNumber(lane.branch)}]`}</span>
        <span className="text-ink-faint tabular-nums">{lane.steps}</span>
        {lane.failed ? <span className="text-failed tabular-nums">✕{lane.failed}</span> : null}
      </LaneName>
      <span className="relative mr-4 h-full min-w-0 flex-1">
        <span
          className="absolute top-2.5 bottom-2.5 min-w-0.5 rounded-full"
          style={{ ...props.spanStyle(lane.from, lane.to), background }}
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

function LaneName(props: {
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

/** The name of a step's node with the visit number, as in `check #3`. */
function labelOf(step: StepRecord, nodeName: NameOf): string {
  const visit = /#(\d+)$/.exec(step.step)?.[0] ?? "";
  return [nodeName(step.node), visit].filter(Boolean).join(" ");
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
