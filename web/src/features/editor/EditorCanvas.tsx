/** The picture of a workflow, to change: boxes are put, moved, connected and removed; each is one undo. */
import {
  applyNodeChanges,
  Background,
  type ColorMode,
  type Connection,
  Controls,
  type EdgeChange,
  MiniMap,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import { type DragEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Problem } from "@/api/http";
import type { Definition } from "@/api/views";
import { EDGE_TYPES, MANY, MARKER, NODE_TYPES, routed } from "@/graph/Canvas";
import "@xyflow/react/dist/base.css";
import "@/graph/canvas.css";
import { pictureOf } from "@/graph/picture";
import { layoutOf } from "@/graph/quickLayout";
import { viewOf } from "@/graph/viewport";
import type { ArrowEdge } from "@/graph/WorkflowEdge";
import type { BoxNode } from "@/graph/WorkflowNode";
import { theme } from "@/theme";
import type { Draft } from "./draft";
import { firstConfig } from "./language";
import { edgeNames, freshId, type Operation } from "./operations";

export const DRAGGED = "application/x-pointsman-node";

export interface Picked {
  kind: "node" | "edge";
  id: string;
}

interface Props {
  draft: Draft;
  problems: readonly Problem[];
  picked: Picked | null;
  onPick: (picked: Picked | null) => void;
}

export function EditorCanvas(props: Props) {
  return (
    <ReactFlowProvider>
      <Inner {...props} />
    </ReactFlowProvider>
  );
}

function Inner({ draft, problems, picked, onPick }: Props) {
  const { t, i18n } = useTranslation();
  const flow = useReactFlow<BoxNode, ArrowEdge>();
  const box = useRef<HTMLDivElement>(null);
  const definition = draft.shown;
  const picture = useMemo(() => pictureOf(definition, i18n.language), [definition, i18n.language]);
  const layout = useMemo(() => layoutOf(picture), [picture]);
  const wrong = useMemo(() => wrongNodes(definition, problems), [definition, problems]);
  const names = useMemo(() => edgeNames(definition.edges), [definition]);
  const made = useMemo<BoxNode[]>(
    () =>
      picture.boxes.map((one) => {
        const problem = wrong.get(one.id);
        return {
          id: one.id,
          type: "box",
          position: one.position ?? layout.places.get(one.id) ?? { x: 0, y: 0 },
          data: problem ? { box: one, problem } : { box: one },
          selected: picked?.kind === "node" && picked.id === one.id,
          ariaLabel: one.name,
        };
      }),
    [picture, layout, wrong, picked],
  );
  const [nodes, setNodes] = useState(made);
  useEffect(() => setNodes(made), [made]);
  const edges = useMemo<ArrowEdge[]>(
    () =>
      picture.arrows.map((arrow, at) => ({
        id: names[at] ?? arrow.id,
        type: "arrow",
        source: arrow.source,
        target: arrow.target,
        data: routed(arrow, layout),
        markerEnd: MARKER,
        selected: picked?.kind === "edge" && picked.id === names[at],
      })),
    [picture, layout, names, picked],
  );

  const follow = useCallback((changes: NodeChange<BoxNode>[]) => {
    setNodes((now) =>
      applyNodeChanges(
        changes.filter((one) => one.type === "position" || one.type === "dimensions"),
        now,
      ),
    );
  }, []);
  const moved = useCallback(
    (_: unknown, __: unknown, dragged: BoxNode[]) => {
      // Whoever moves one box means all of them to stay where they are seen.
      const placed = definition.nodes.every((node) => node.position);
      const at = new Map(nodes.map((node) => [node.id, node.position]));
      for (const one of dragged) at.set(one.id, one.position);
      const changes = definition.nodes
        .filter((node) => !placed || dragged.some((one) => one.id === node.id))
        .map((node): Operation => {
          const place = at.get(node.id) ?? { x: 0, y: 0 };
          const rounded = { x: Math.round(place.x), y: Math.round(place.y) };
          return { op: "change_node", node: node.id, set: { "/position": rounded } };
        });
      if (changes.length > 0) draft.act(...changes);
    },
    [definition, draft, nodes],
  );
  const connect = (connection: Connection) => {
    const known = definition.edges.some((one) => one.source === connection.source && one.target === connection.target);
    if (!known) draft.act({ op: "connect", edge: { source: connection.source, target: connection.target } });
  };
  const remove = ({ nodes: gone, edges: cut }: { nodes: BoxNode[]; edges: ArrowEdge[] }) => {
    const ids = new Set(gone.map((node) => node.id));
    draft.act(
      ...cut
        .filter((edge) => !ids.has(edge.source) && !ids.has(edge.target))
        .map((edge): Operation => ({ op: "disconnect", edge: edge.id })),
      ...gone.map((node): Operation => ({ op: "remove_node", node: node.id })),
    );
    onPick(null);
  };
  const drop = (event: DragEvent) => {
    const type = event.dataTransfer.getData(DRAGGED);
    if (!type) return;
    event.preventDefault();
    const place = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const id = freshId(definition, type);
    const position = { x: Math.round(place.x), y: Math.round(place.y) };
    draft.act(...pinned(definition, nodes), {
      op: "add_node",
      node: { id, type, position, config: firstConfig(type) },
    });
    onPick({ kind: "node", id });
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dragging is one way; the palette's buttons are the other
    <div ref={box} className="h-full" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
      <ReactFlow<BoxNode, ArrowEdge>
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        colorMode={theme() as ColorMode}
        onInit={() => void flow.setViewport(viewOf(layout, box.current))}
        minZoom={0.05}
        onNodesChange={follow}
        onEdgesChange={ignore}
        onNodeDragStop={moved}
        onConnect={connect}
        onDelete={remove}
        deleteKeyCode={["Delete", "Backspace"]}
        onNodeClick={(_, node) => onPick({ kind: "node", id: node.id })}
        onEdgeClick={(_, edge) => onPick({ kind: "edge", id: edge.id })}
        onPaneClick={() => onPick(null)}
        onlyRenderVisibleElements={picture.boxes.length > MANY}
        aria-label={t("graph.label")}
      >
        <Background gap={20} />
        <Controls showInteractive={false} />
        {picture.boxes.length > 12 ? <MiniMap pannable zoomable /> : null}
      </ReactFlow>
    </div>
  );
}

function ignore(_: EdgeChange[]): void {
  // What is selected is ours to know.
}

/** Boxes that nobody had placed stay where they are seen, once one of them has a place. */
export function pinned(definition: Definition, nodes: readonly BoxNode[]): Operation[] {
  const at = new Map(nodes.map((node) => [node.id, node.position]));
  return definition.nodes
    .filter((node) => !node.position && at.has(node.id))
    .map((node): Operation => {
      const place = at.get(node.id) ?? { x: 0, y: 0 };
      return {
        op: "change_node",
        node: node.id,
        set: { "/position": { x: Math.round(place.x), y: Math.round(place.y) } },
      };
    });
}

/** Which nodes have problems: by the places in the native document. */
function wrongNodes(definition: Definition, problems: readonly Problem[]): Map<string, "error" | "warning"> {
  const found = new Map<string, "error" | "warning">();
  for (const problem of problems) {
    const at = /^\/nodes\/(\d+)/.exec(problem.pointer)?.[1];
    const node = at === undefined ? undefined : definition.nodes[Number(at)];
    if (!node || problem.severity === "info") continue;
    if (found.get(node.id) !== "error") found.set(node.id, problem.severity === "error" ? "error" : "warning");
  }
  return found;
}
