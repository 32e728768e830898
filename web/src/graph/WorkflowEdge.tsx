import { BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { useTaken } from "./overlay";
import type { Arrow } from "./picture";
import type { Point } from "./quickLayout";

export type ArrowEdge = Edge<{ arrow: Arrow; route?: Point[] }, "arrow">;

const BELOW = 62;
const BEND = 56;

export const WorkflowEdge = memo(function WorkflowEdge(props: EdgeProps<ArrowEdge>) {
  const { id, sourceX, sourceY, targetX, targetY, data, selected, markerEnd } = props;
  const taken = useTaken(id);
  const from = { x: sourceX, y: sourceY };
  const to = { x: targetX, y: targetY };
  const [path, label] = targetX <= sourceX ? wayBack(from, to) : through([from, ...(data?.route ?? []), to]);
  const colour = selected
    ? "var(--accent)"
    : taken > 0
      ? "var(--done)"
      : data?.arrow.isError
        ? "var(--failed)"
        : "var(--line-strong)";
  return (
    <>
      <BaseEdge
        id={id}
        path={path}
        {...(markerEnd ? { markerEnd } : {})}
        style={{
          stroke: colour,
          strokeWidth: taken > 0 || selected ? 2 : 1.5,
          ...(data?.arrow.isError ? { strokeDasharray: "5 4" } : {}),
        }}
      />
      {data?.arrow.label || taken > 1 ? (
        <EdgeLabelRenderer>
          <div
            style={{ transform: `translate(-50%, -50%) translate(${label.x}px, ${label.y}px)` }}
            className="pointer-events-none absolute max-w-40 truncate rounded bg-sunken px-1 py-0.5 text-[11px] text-ink-soft"
          >
            {data?.arrow.label}
            {taken > 1 ? <span className="ml-1 text-done">×{taken}</span> : null}
          </div>
        </EdgeLabelRenderer>
      ) : null}
    </>
  );
});

/** A curve by way of points, flat at each of them; the label stands on its longest part. */
function through(points: readonly Point[]): [string, Point] {
  const first = points[0] as Point;
  let path = `M ${first.x} ${first.y}`;
  let label = first;
  let longest = -1;
  for (let at = 1; at < points.length; at++) {
    const from = points[at - 1] as Point;
    const to = points[at] as Point;
    const bend = Math.max((to.x - from.x) / 2, 12);
    path +=
      from.y === to.y ? ` L ${to.x} ${to.y}` : ` C ${from.x + bend} ${from.y}, ${to.x - bend} ${to.y}, ${to.x} ${to.y}`;
    if (to.x - from.x > longest) {
      longest = to.x - from.x;
      label = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
    }
  }
  return [path, label];
}

/** An arrow that leads back goes below what it passes. */
function wayBack(from: Point, to: Point): [string, Point] {
  const low = Math.max(from.y, to.y) + BELOW;
  const path =
    `M ${from.x} ${from.y} C ${from.x + BEND} ${from.y}, ${from.x + BEND} ${low}, ${from.x} ${low} ` +
    `L ${to.x} ${low} C ${to.x - BEND} ${low}, ${to.x - BEND} ${to.y}, ${to.x} ${to.y}`;
  return [path, { x: (from.x + to.x) / 2, y: low }];
}
