/** The picture of a workflow, to look at: with what an execution adds, if there is one. */
import {
  Background,
  type ColorMode,
  Controls,
  MarkerType,
  MiniMap,
  type NodeMouseHandler,
  ReactFlow,
  ReactFlowProvider,
} from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import "./canvas.css";
import { useMemo, useRef } from "react";
import { useTranslation } from "react-i18next";
import { theme } from "@/theme";
import { type Overlay, OverlayContext } from "./overlay";
import type { Arrow, Picture } from "./picture";
import { type Layout, layoutOf } from "./quickLayout";
import { viewOf } from "./viewport";
import { type ArrowEdge, WorkflowEdge } from "./WorkflowEdge";
import { type BoxNode, WorkflowNode } from "./WorkflowNode";

export const NODE_TYPES = { box: WorkflowNode };
export const EDGE_TYPES = { arrow: WorkflowEdge };
export const MARKER = { type: MarkerType.ArrowClosed, width: 16, height: 16, color: "var(--line-strong)" } as const;
/** From so many boxes on only those in sight are drawn. */
export const MANY = 150;

export function Canvas(props: {
  picture: Picture;
  overlay?: Overlay;
  picked?: string | null;
  onPick?: (node: string | null) => void;
}) {
  const { t } = useTranslation();
  const { picture, picked = null, onPick } = props;
  const layout = useMemo(() => layoutOf(picture), [picture]);
  const nodes = useMemo<BoxNode[]>(
    () =>
      picture.boxes.map((box) => ({
        id: box.id,
        type: "box",
        position: layout.places.get(box.id) ?? { x: 0, y: 0 },
        data: { box },
        selected: box.id === picked,
        ariaLabel: box.name,
      })),
    [picture, layout, picked],
  );
  const edges = useMemo<ArrowEdge[]>(
    () =>
      picture.arrows.map((arrow) => ({
        id: arrow.id,
        type: "arrow",
        source: arrow.source,
        target: arrow.target,
        data: routed(arrow, layout),
        markerEnd: MARKER,
      })),
    [picture, layout],
  );
  const box = useRef<HTMLDivElement>(null);
  const pick: NodeMouseHandler<BoxNode> = (_, node) => onPick?.(node.id);
  return (
    <OverlayContext.Provider value={props.overlay ?? null}>
      <div ref={box} className="h-full">
        <ReactFlowProvider>
          <ReactFlow<BoxNode, ArrowEdge>
            nodes={nodes}
            edges={edges}
            nodeTypes={NODE_TYPES}
            edgeTypes={EDGE_TYPES}
            colorMode={theme() as ColorMode}
            onInit={(flow) => void flow.setViewport(viewOf(layout, box.current))}
            minZoom={0.05}
            nodesDraggable={false}
            nodesConnectable={false}
            edgesFocusable={false}
            onlyRenderVisibleElements={picture.boxes.length > MANY}
            onNodeClick={pick}
            onPaneClick={() => onPick?.(null)}
            aria-label={t("graph.label")}
          >
            <Background gap={20} />
            <Controls showInteractive={false} />
            {picture.boxes.length > 12 ? <MiniMap pannable zoomable /> : null}
          </ReactFlow>
        </ReactFlowProvider>
      </div>
    </OverlayContext.Provider>
  );
}

export function routed(arrow: Arrow, layout: Layout): NonNullable<ArrowEdge["data"]> {
  const route = layout.routes.get(arrow.id);
  return route ? { arrow, route } : { arrow };
}
