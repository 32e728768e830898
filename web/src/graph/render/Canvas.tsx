/** Read-only canvas of a workflow, with the state of an execution if there is one. */

import {
  Background,
  type ColorMode,
  MiniMap,
  type NodeMouseHandler,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import { BOX } from "@/graph/layout/geometry";
import "@xyflow/react/dist/base.css";
import "./canvas.css";
import { useEffect, useMemo, useRef } from "react";
import { useTranslation } from "react-i18next";
import { framesOf } from "@/graph/layout/frames";
import { LARGE_PICTURE, type Picture } from "@/graph/model/picture";
import { theme } from "@/theme";
import { useAriaLabels } from "./ariaLabels";
import { CanvasControls } from "./CanvasControls";
import { type Marks, MarksContext } from "./changeMarks";
import { FarCanvas, useIsFar, useZoomToPointer } from "./FarCanvas";
import {
  arrowsOf,
  boxesOf,
  type CanvasNode,
  EDGE_TYPES,
  framesAsNodes,
  isFolded,
  NODE_TYPES,
  notesAsNodes,
  regionIn,
} from "./flowElements";
import { FoldingContext, useFoldingOf } from "./folding";
import { type Overlay, OverlayContext } from "./overlay";
import { fitViewport, initialViewport, SMALLEST } from "./viewport";
import { useVisiblePicture } from "./visiblePicture";
import type { ArrowEdge } from "./WorkflowEdge";

/** Storage key of the folding state in comparisons; nothing is folded at first. */
const COMPARISON_KEY = "\ncompared";

const NONE: CanvasNode[] = [];
const NO_ARROWS: ArrowEdge[] = [];

interface Props {
  picture: Picture;
  overlay?: Overlay;
  /** Added, removed and changed elements, if two definitions are compared. */
  marks?: Marks;
  picked?: string | null;
  onPick?: (node: string | null) => void;
}

export function Canvas(props: Props) {
  return (
    <OverlayContext.Provider value={props.overlay ?? null}>
      <MarksContext.Provider value={props.marks ?? null}>
        <ReactFlowProvider>
          <Inner {...props} />
        </ReactFlowProvider>
      </MarksContext.Provider>
    </OverlayContext.Provider>
  );
}

function Inner({ picture, marks, picked = null, onPick }: Props) {
  const { t } = useTranslation();
  const flow = useReactFlow<CanvasNode, ArrowEdge>();
  const folding = useFoldingOf(marks ? COMPARISON_KEY : (picture.workflow ?? ""));
  const shown = useVisiblePicture(picture, folding.closed);
  const { layout } = shown;
  const nodes = useMemo<CanvasNode[]>(() => {
    const names = new Map(picture.boxes.map((one) => [one.id, one.name]));
    const frames = framesOf(shown.picture.regions ?? [], layout.positions);
    const boxes = boxesOf(shown.picture, layout, { selected: (id) => id === picked }, new Map());
    const notes = notesAsNodes(shown.notes, { selected: () => false }, new Map());
    return [...framesAsNodes(frames, names), ...notes, ...boxes];
  }, [picture, shown, layout, picked]);
  const edges = useMemo(() => arrowsOf(shown.picture, shown, { selected: () => false }, new Map()), [shown]);
  const ariaLabels = useAriaLabels(false);
  const box = useRef<HTMLDivElement>(null);
  const last = useRef(picked);
  useEffect(() => {
    if (picked === last.current) return;
    last.current = picked;
    // A node picked in a list or a timeline may be out of view.
    const at = picked === null ? undefined : layout.positions.get(picked);
    const view = box.current;
    if (!at || !view) return;
    const { x, y, zoom } = flow.getViewport();
    const [left, top] = [at.x * zoom + x, at.y * zoom + y];
    const isSeen =
      left >= 0 &&
      top >= 0 &&
      left + BOX.width * zoom <= view.clientWidth &&
      top + BOX.height * zoom <= view.clientHeight;
    if (!isSeen) void flow.setCenter(at.x + BOX.width / 2, at.y + BOX.height / 2, { zoom, duration: 200 });
  }, [picked, layout, flow]);
  const isFar = useIsFar(shown.picture.boxes.length);
  const zoomToPointer = useZoomToPointer();
  const pick: NodeMouseHandler<CanvasNode> = (_, node) => onPick?.(node.type === "box" ? node.id : null);
  return (
    <FoldingContext.Provider value={folding}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: zooming in; the wheel, the buttons and the outline offer it too */}
      <div ref={box} className="h-full" onDoubleClick={isFar ? zoomToPointer : undefined}>
        <ReactFlow<CanvasNode, ArrowEdge>
          nodes={isFar ? NONE : nodes}
          edges={isFar ? NO_ARROWS : edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          colorMode={theme() as ColorMode}
          onInit={(ready) => void ready.setViewport(initialViewport(shown, box.current))}
          minZoom={SMALLEST}
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          onlyRenderVisibleElements={shown.picture.boxes.length > LARGE_PICTURE}
          onNodeClick={pick}
          onNodeDoubleClick={(_, node) => {
            const group = isFolded(node.id) ? regionIn(node.id) : node.id;
            if (picture.regions?.some((one) => one.id === group)) folding.toggle(group);
          }}
          onPaneClick={() => onPick?.(null)}
          zoomOnDoubleClick={false}
          aria-label={t("graph.label")}
          ariaLabelConfig={ariaLabels}
        >
          <Background gap={20} />
          <CanvasControls onWhole={() => void flow.setViewport(fitViewport(shown, box.current))} />
          {isFar ? <FarCanvas shown={shown} /> : null}
          {!isFar && shown.picture.boxes.length > 12 ? <MiniMap pannable zoomable /> : null}
        </ReactFlow>
      </div>
    </FoldingContext.Provider>
  );
}
