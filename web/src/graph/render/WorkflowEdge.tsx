import { BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps } from "@xyflow/react";
import { Plus } from "lucide-react";
import { memo, useContext } from "react";
import { useTranslation } from "react-i18next";
import type { Point } from "@/graph/layout/geometry";
import { LABEL } from "@/graph/layout/labelWidth";
import type { Arrow } from "@/graph/model/picture";
import { anchorOf } from "@/graph/routing/labels";
import { pathOf } from "@/graph/routing/paths";
import { directPath, type Route } from "@/graph/routing/routes";
import { CanvasStateContext, useHovered } from "./canvasState";
import { MARKS, useMark } from "./changeMarks";
import { useActive, useTaken } from "./overlay";
import { type ProblemMark, ProblemSign } from "./ProblemSign";

export type ArrowEdge = Edge<{ arrow: Arrow; line?: Route; problem?: ProblemMark }, "arrow">;

/** Distance between the drag handle and the box. */
const HANDLE_OFFSET = 8;

/** The computed route; the direct one while the user drags one of its ends. */
function routeBetween(from: Point, to: Point, line: Route | undefined): Route {
  const isThere = (point: Point | undefined, at: Point) =>
    point && Math.abs(point.x - at.x) <= HANDLE_OFFSET && Math.abs(point.y - at.y) <= 1;
  if (line && isThere(line.points[0], from) && isThere(line.points.at(-1), to)) return line;
  const points = directPath(from, to);
  return { points, label: { ...anchorOf(points), width: LABEL.widest } };
}

export const WorkflowEdge = memo(function WorkflowEdge(props: EdgeProps<ArrowEdge>) {
  const { id, sourceX, sourceY, targetX, targetY, data, selected, markerEnd } = props;
  const taken = useTaken(id);
  const isActive = useActive(id);
  const mark = useMark("edge", id);
  const { points, label } = routeBetween({ x: sourceX, y: sourceY }, { x: targetX, y: targetY }, data?.line);
  const words = label.width > 0 || selected ? data?.arrow.label : "";
  const colour = mark
    ? MARKS[mark].stroke
    : selected
      ? "var(--accent)"
      : isActive
        ? "var(--running)"
        : taken > 0
          ? "var(--done)"
          : data?.arrow.isError || data?.problem?.severity === "error"
            ? "var(--failed)"
            : data?.problem
              ? "var(--waiting)"
              : "var(--line-strong)";
  const dashes = data?.arrow.isImplied ? "2 4" : data?.arrow.isError || mark === "removed" ? "5 4" : undefined;
  return (
    <>
      <BaseEdge
        id={id}
        path={pathOf(points)}
        interactionWidth={24}
        {...(isActive ? { className: "edge-active" } : {})}
        {...(markerEnd ? { markerEnd } : {})}
        style={{
          stroke: colour,
          strokeWidth: taken > 0 || selected || mark ? 2 : 1.5,
          ...(dashes ? { strokeDasharray: dashes } : {}),
        }}
      />
      {words || taken > 1 || mark || data?.problem ? (
        <EdgeLabelRenderer>
          <div
            style={{ transform: `translate(-50%, -50%) translate(${label.x}px, ${label.y}px)` }}
            className={`pointer-events-none absolute flex rounded bg-sunken px-1 py-0.5 text-[11px] whitespace-nowrap text-ink-soft ${selected ? "z-10" : ""}`}
          >
            {data?.problem ? (
              <span className={words ? "absolute -top-4 right-0" : ""}>
                <ProblemSign problem={data.problem} />
              </span>
            ) : null}
            {mark ? <span className={`mr-1 font-bold ${MARKS[mark].ink}`}>{MARKS[mark].sign}</span> : null}
            {words ? (
              <bdi className="truncate" style={selected ? {} : { maxWidth: label.width - 8 }}>
                {words}
              </bdi>
            ) : null}
            {taken > 1 ? <span className="ml-1 text-done">×{taken}</span> : null}
          </div>
        </EdgeLabelRenderer>
      ) : null}
      <InsertButton id={id} at={label} isBelow={Boolean(data?.arrow.label)} isPicked={selected ?? false} />
    </>
  );
});

/** Button that inserts a node on the arrow; visible while the arrow is hovered or selected. */
function InsertButton(props: { id: string; at: Point; isBelow: boolean; isPicked: boolean }) {
  const { t } = useTranslation();
  const drawn = useContext(CanvasStateContext);
  const isHovered = useHovered(props.id);
  if (!drawn || !(isHovered || props.isPicked)) return null;
  const y = props.at.y + (props.isBelow ? 22 : 0);
  return (
    <EdgeLabelRenderer>
      <button
        type="button"
        style={{ transform: `translate(-50%, -50%) translate(${props.at.x}px, ${y}px)` }}
        className="nopan nodrag pointer-events-auto absolute z-10 flex size-6 items-center justify-center rounded-full border border-accent bg-surface text-accent hover:bg-accent-soft"
        aria-label={t("graph.insert")}
        title={t("graph.insert")}
        onMouseEnter={() => drawn.hover(props.id)}
        onMouseLeave={() => drawn.hover(null)}
        onClick={() => drawn.insert(props.id)}
      >
        <Plus className="size-4" aria-hidden />
      </button>
    </EdgeLabelRenderer>
  );
}
