import { BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from "@xyflow/react";
import { memo } from "react";
import { useTaken } from "./overlay";
import type { Arrow } from "./picture";

export type ArrowEdge = Edge<{ arrow: Arrow }, "arrow">;

const BACK_BELOW = 70;

export const WorkflowEdge = memo(function WorkflowEdge(props: EdgeProps<ArrowEdge>) {
  const { id, sourceX, sourceY, targetX, targetY, data, selected, markerEnd } = props;
  const taken = useTaken(id);
  const [path, x, y] = targetX < sourceX ? wayBack(sourceX, sourceY, targetX, targetY) : getBezierPath(props);
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
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
            className="pointer-events-none absolute max-w-44 truncate rounded bg-surface/90 px-1.5 py-0.5 text-[11px] text-ink-soft"
          >
            {data?.arrow.label}
            {taken > 1 ? <span className="ml-1 text-done">×{taken}</span> : null}
          </div>
        </EdgeLabelRenderer>
      ) : null}
    </>
  );
});

/** An arrow that leads back goes below what it passes. */
function wayBack(sourceX: number, sourceY: number, targetX: number, targetY: number): [string, number, number] {
  const low = Math.max(sourceY, targetY) + BACK_BELOW;
  const path =
    `M ${sourceX} ${sourceY} C ${sourceX + 60} ${sourceY}, ${sourceX + 60} ${low}, ${sourceX} ${low} ` +
    `L ${targetX} ${low} C ${targetX - 60} ${low}, ${targetX - 60} ${targetY}, ${targetX} ${targetY}`;
  return [path, (sourceX + targetX) / 2, low];
}
