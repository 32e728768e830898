import type { Node, NodeProps } from "@xyflow/react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import { StatusIcon } from "@/components/Status";
import { BOX } from "@/graph/layout/geometry";
import type { Box } from "@/graph/model/picture";
import { useRefusal } from "./canvasState";
import { MARKS, useMark } from "./changeMarks";
import { iconOf } from "./nodeIcons";
import { useBoxOverlay } from "./overlay";
import { PartialRunSigns } from "./PartialRunSigns";
import { Ports } from "./Ports";
import { type ProblemMark, ProblemSign } from "./ProblemSign";

export type BoxNode = Node<{ box: Box; problem?: ProblemMark }, "box">;

const EDGE_OF = {
  pending: "border-idle",
  running: "border-running shadow-[0_0_0_3px_var(--running-soft)]",
  waiting: "border-waiting shadow-[0_0_0_3px_var(--waiting-soft)]",
  paused: "border-waiting shadow-[0_0_0_3px_var(--waiting-soft)]",
  done: "border-done",
  passed: "border-done",
  failed: "border-failed shadow-[0_0_0_3px_var(--failed-soft)]",
  cancelled: "border-idle border-dashed",
} as const;

export const WorkflowNode = memo(function WorkflowNode({ id, data, selected }: NodeProps<BoxNode>) {
  const { t } = useTranslation();
  const overlay = useBoxOverlay(id);
  const refusal = useRefusal(id);
  const mark = useMark("node", id);
  const { box } = data;
  const Icon = iconOf(box.type);
  const edge = mark
    ? MARKS[mark].edge
    : data.problem?.severity === "error"
      ? "border-failed"
      : overlay
        ? EDGE_OF[overlay.look as keyof typeof EDGE_OF]
        : "border-line-strong";
  return (
    <div
      style={{ width: BOX.width, height: BOX.height }}
      className={`relative flex items-center gap-2.5 rounded-lg border-[1.5px] px-3 py-2 ${edge} ${mark ? "" : "bg-raised"} ${selected ? "outline-2 outline-offset-2 outline-accent" : ""} ${refusal ? "opacity-55" : ""}`}
    >
      <PartialRunSigns id={id} />
      {data.problem ? (
        <span className="absolute -top-2.5 right-2">
          <ProblemSign problem={data.problem} />
        </span>
      ) : null}
      <Ports box={box} isSelected={selected} />
      <span className="flex size-8 shrink-0 items-center justify-center rounded-md bg-sunken text-ink-soft">
        <Icon className="size-4" aria-hidden />
      </span>
      <div className="min-w-0 flex-1">
        <p className="truncate font-medium" title={box.name}>
          <bdi>{box.name}</bdi>
        </p>
        {refusal ? (
          <p className="truncate text-xs text-failed">{refusal}</p>
        ) : (
          <p className="truncate text-xs text-ink-faint" title={box.detail}>
            {t(`node.${box.type}`, box.type)}
            {box.detail ? <span> · {box.detail}</span> : null}
          </p>
        )}
      </div>
      {mark ? (
        <span className={`text-lg font-bold ${MARKS[mark].ink}`} title={t(`diff.${mark}`)}>
          <span aria-hidden>{MARKS[mark].sign}</span>
          <span className="sr-only">{t(`diff.${mark}`)}</span>
        </span>
      ) : null}
      {overlay ? (
        <span className="flex flex-col items-end text-xs text-ink-soft">
          <StatusIcon status={overlay.look} />
          <span className="sr-only">{t(`status.${overlay.look}`)}</span>
          {overlay.count ? <span className="tabular-nums">{overlay.count}</span> : null}
          {overlay.round === null ? null : <span title={t("graph.round")}>↻{overlay.round}</span>}
        </span>
      ) : null}
    </div>
  );
});
