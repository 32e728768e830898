/** Canvas of the editor: nodes are added, moved, connected and removed; each change is one undo step. */

import {
  Background,
  type ColorMode,
  type EdgeChange,
  type FinalConnectionState,
  MiniMap,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
} from "@xyflow/react";
import { type DragEvent, type FocusEvent, type MouseEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Point } from "@/graph/layout/geometry";
import { BOX } from "@/graph/layout/geometry";
import { CanvasControls } from "@/graph/render/CanvasControls";
import { CanvasState, CanvasStateContext } from "@/graph/render/canvasState";
import { FarCanvas, useIsFar, useZoomToPointer } from "@/graph/render/FarCanvas";
import { EDGE_TYPES, isFolded, NODE_TYPES, regionIn } from "@/graph/render/flowElements";
import { FoldingContext, useFolding, useFoldingOf } from "@/graph/render/folding";
import "@xyflow/react/dist/base.css";
import "@/graph/render/canvas.css";
import { useStableHandlers } from "@/components/useStableHandlers";
import { LARGE_PICTURE, type Picture, pictureOf } from "@/graph/model/picture";
import { useAriaLabels } from "@/graph/render/ariaLabels";
import { type NoteEditing, NoteEditingContext } from "@/graph/render/noteEditing";
import { SMALLEST } from "@/graph/render/viewport";
import { useVisiblePicture, type VisiblePicture } from "@/graph/render/visiblePicture";
import type { ArrowEdge } from "@/graph/render/WorkflowEdge";
import { theme } from "@/theme";
import { freePosition, predecessorOf } from "../document/edits";
import { focusedElement, focusFirst, problemsByElement } from "../document/pointers";
import { useDrawnDefinition, useEditor } from "../editorContext";
import { CanvasDialogs } from "./CanvasDialogs";
import { CanvasMenu } from "./CanvasMenu";
import { CanvasTools } from "./CanvasTools";
import type { OpenDialog } from "./drawing";
import { useCanvasKeys } from "./keys";
import { EMPTY_SELECTION, existingIn, type Picked } from "./selection";
import { type EditorNode, useBoxes } from "./useBoxes";
import { useCanvasView } from "./useCanvasView";
import { useConnecting } from "./useConnecting";
import { type MenuTarget, useMenuEntries } from "./useMenuEntries";
import { useNoteEditing } from "./useNoteEditing";
import { useVerbs, type Verbs } from "./useVerbs";

export const DRAGGED = "application/x-pointsman-node";

const MULTI_SELECTION_KEYS = ["Control", "Meta", "Shift"];
const NONE: EditorNode[] = [];
const NO_ARROWS: ArrowEdge[] = [];

export function EditorCanvas() {
  const { t, i18n } = useTranslation();
  const drawn = useDrawnDefinition();
  const picture = useMemo(() => pictureOf(drawn, i18n.language, t), [drawn, i18n.language, t]);
  const folding = useFoldingOf(picture.workflow ?? "");
  const [asked, ask] = useState<OpenDialog>(null);
  const state = useMemo(() => new CanvasState((arrow) => ask({ kind: "add", adding: { on: arrow } })), []);
  return (
    <ReactFlowProvider>
      <FoldingContext.Provider value={folding}>
        <CanvasStateContext.Provider value={state}>
          <Surface picture={picture} state={state} asked={asked} ask={ask} />
        </CanvasStateContext.Provider>
      </FoldingContext.Provider>
    </ReactFlowProvider>
  );
}

interface SurfaceProps {
  picture: Picture;
  state: CanvasState;
  asked: OpenDialog;
  ask: (dialog: OpenDialog) => void;
}

/** Handles pointer, keys, menu and dialogs around the graph. */
function Surface({ picture, state, asked, ask }: SurfaceProps) {
  const flow = useReactFlow<EditorNode, ArrowEdge>();
  const box = useRef<HTMLDivElement>(null);
  const { draft, checked, selection, pick, canvas, node: picked } = useEditor();
  const folding = useFolding();
  const definition = draft.shown;
  const shown = useVisiblePicture(picture, folding.closed);
  const wrong = useMemo(() => problemsByElement(definition, checked.problems), [definition, checked.problems]);
  const boxes = useBoxes({ picture, shown, wrong });
  const notes = useNoteEditing();
  const verbs = useVerbs(picture, ask, notes);
  const view = useCanvasView({ flow, box, shown, positions: boxes.places, drawing: verbs });
  const isFar = useIsFar(shown.picture.boxes.length);
  const comeNear = useZoomToPointer();
  const [pointed, point] = useState<MenuTarget>({ at: { x: 0, y: 0 } });

  const at = (event: { clientX: number; clientY: number }) =>
    flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
  const drop = (event: DragEvent) => {
    const type = event.dataTransfer.getData(DRAGGED);
    if (!type) return;
    event.preventDefault();
    const under = document.elementFromPoint(event.clientX, event.clientY)?.closest<HTMLElement>(".react-flow__edge");
    const on = under?.dataset.id;
    const isOurs = on !== undefined && picture.arrows.some((arrow) => arrow.id === on && !arrow.isImplied);
    const place = at(event);
    verbs.add({
      type,
      at: { x: place.x - (isOurs ? BOX.width / 2 : 0), y: place.y - (isOurs ? BOX.height / 2 : 0) },
      ...(isOurs ? { on } : {}),
    });
  };
  const over = (event: MouseEvent) => {
    const target = event.target as Element;
    const node = target.closest<HTMLElement>(".react-flow__node-box, .react-flow__node-note")?.dataset.id;
    const edge = target.closest<HTMLElement>(".react-flow__edge")?.dataset.id;
    point({ at: at(event), ...(node ? { node } : {}), ...(edge ? { edge } : {}) });
    if (node && !selection.nodes.includes(node)) pick({ kind: "node", id: node });
    else if (edge) pick({ kind: "edge", id: edge });
  };
  const twice = (event: MouseEvent) => {
    const target = event.target as Element;
    if (!target.closest(".react-flow__pane") || target.closest(".react-flow__node, .react-flow__edge")) return;
    if (isFar) comeNear(event);
    else ask({ kind: "add", adding: { at: at(event) } });
  };
  const freePlace = () => {
    const middle = canvas.middle();
    return freePosition({ x: middle.x - BOX.width / 2, y: middle.y - BOX.height / 2 }, canvas.positions());
  };
  const quickAdd = () => {
    const after = predecessorOf(definition, picked?.id);
    ask({ kind: "add", adding: after === undefined ? { at: freePlace() } : { after } });
  };
  useSurfaceKeys({ verbs, notes, picked: view.picked, nudge: boxes.nudge, add: quickAdd, freePlace, ask });
  /** Select the element that receives keyboard focus. */
  const follow = (event: FocusEvent) => {
    const at = focusedElement(event.target);
    if (!at || selection[at.kind === "node" ? "nodes" : "edges"].includes(at.id)) return;
    pick(at);
    view.reveal([picture.arrows.find((arrow) => arrow.id === at.id)?.source ?? at.id]);
  };
  return (
    <CanvasMenu parts={useMenuEntries(pointed, picture, verbs, ask)}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: keys, menus and the outline offer the same actions */}
      <div
        ref={box}
        data-canvas
        tabIndex={-1}
        className="relative h-full outline-none"
        onDragOver={(event) => event.preventDefault()}
        onDrop={drop}
        onContextMenuCapture={over}
        onDoubleClick={twice}
        onFocusCapture={follow}
      >
        <Flow
          picture={picture}
          shown={shown}
          state={state}
          boxes={boxes}
          isFar={isFar}
          view={view}
          ask={ask}
          verbs={verbs}
          notes={notes}
        >
          <CanvasTools
            isTidying={verbs.isTidying}
            onAdd={quickAdd}
            onFind={() => ask({ kind: "find" })}
            onTidy={verbs.tidy}
            onHelp={() => ask({ kind: "help" })}
          />
        </Flow>
        <p role="status" className="pointer-events-none absolute bottom-3 left-1/2 -translate-x-1/2">
          {verbs.message ? (
            <span className="block max-w-[80vw] rounded-md border border-line-strong bg-raised px-3 py-1.5 shadow-lg">
              {verbs.message}
            </span>
          ) : null}
        </p>
        <CanvasDialogs asked={asked} onClose={() => ask(null)} drawing={verbs} />
      </div>
    </CanvasMenu>
  );
}

function useSurfaceKeys(about: {
  verbs: Verbs;
  picked: Picked | null;
  nudge: (ids: readonly string[], by: Point) => void;
  notes: NoteEditing | null;
  add: () => void;
  freePlace: () => Point;
  ask: (dialog: OpenDialog) => void;
}): void {
  const { t } = useTranslation();
  const { node, selection, select, canvas, show, mayChange } = useEditor();
  const { verbs, notes, picked, ask } = about;
  useCanvasKeys({
    ...verbs,
    add: about.add,
    addNote: () => mayChange && verbs.add({ type: "note", at: about.freePlace() }),
    addFrame: () => mayChange && verbs.frame(about.freePlace()),
    find: () => ask({ kind: "find" }),
    help: () => ask({ kind: "help" }),
    connect: () => {
      if (!picked) verbs.showMessage(t("canvas.nothingPicked"));
      else if (mayChange) ask({ kind: "connect", from: picked });
    },
    move: (by) => about.nudge(selection.nodes, by),
    remove: () => {
      verbs.remove();
      canvas.focus();
    },
    edit: () => {
      if (picked === null) return verbs.showMessage(t("canvas.nothingPicked"));
      if (notes && node?.type === "note") return notes.edit(node.id);
      show("properties");
      focusFirst();
    },
    leave: () => canvas.focus(),
    outline: () => {
      canvas.focusOutline = true;
      show("outline");
    },
    clearSelection: () => select(EMPTY_SELECTION),
    selectAll: verbs.selectAll,
  });
}

/** Selection changes from React Flow; the changes of one gesture are applied together. */
function useSelectionChanges() {
  const { draft, selection, select, panel, show } = useEditor();
  const pending = useRef<typeof selection | null>(null);
  return (changes: (NodeChange<EditorNode> | EdgeChange<ArrowEdge>)[], kind: "nodes" | "edges") => {
    const now = new Set(existingIn(selection, draft.shown)[kind]);
    let moved = false;
    for (const one of changes)
      if (one.type === "select" && !isFolded(one.id)) {
        moved = true;
        if (one.selected) now.add(one.id);
        else now.delete(one.id);
      }
    if (!moved) return;
    pending.current = { ...(pending.current ?? selection), [kind]: [...now] };
    queueMicrotask(() => {
      const next = pending.current;
      pending.current = null;
      if (!next) return;
      select(next);
      if (next.nodes.length + next.edges.length === 1 && panel !== "try") show("properties");
    });
  };
}

interface FlowProps {
  picture: Picture;
  shown: VisiblePicture;
  state: CanvasState;
  boxes: ReturnType<typeof useBoxes>;
  isFar: boolean;
  view: ReturnType<typeof useCanvasView>;
  ask: (dialog: OpenDialog) => void;
  verbs: Verbs;
  notes: NoteEditing | null;
  children: ReactNode;
}

/** The React Flow graph. */
function Flow({ picture, shown, state, boxes, isFar, view, ask, verbs, notes, children }: FlowProps) {
  const { t } = useTranslation();
  const flow = useReactFlow<EditorNode, ArrowEdge>();
  const { select, mayChange } = useEditor();
  const folding = useFolding();
  const connecting = useConnecting(state, verbs);
  const change = useSelectionChanges();
  const handlers = useStableHandlers({
    ...connecting.handlers,
    onNodesChange: (changes: NodeChange<EditorNode>[]) => {
      boxes.follow(changes);
      change(changes, "nodes");
    },
    onEdgesChange: (changes: EdgeChange<ArrowEdge>[]) => change(changes, "edges"),
    onConnectEnd: (event: globalThis.MouseEvent | TouchEvent, connection: FinalConnectionState) => {
      connecting.end();
      const from = connection.fromNode?.id;
      if (from === undefined || connection.toNode || !("clientX" in event)) return;
      if (connecting.isDroppedOnBox(event, connection) || connection.fromHandle?.type !== "source") return;
      const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
      ask({ kind: "add", adding: { after: from, at, outcome: connection.fromHandle.id ?? undefined } });
    },
    onEdgeMouseEnter: (_: MouseEvent, edge: ArrowEdge) => {
      if (!edge.data?.arrow.isImplied) state.hover(edge.id);
    },
    onEdgeMouseLeave: () => state.hover(null),
    onNodeDoubleClick: (_: MouseEvent, node: EditorNode) => {
      const id = isFolded(node.id) ? regionIn(node.id) : node.id;
      if (node.type === "note") notes?.edit(id);
      else if (picture.regions?.some((one) => one.id === id)) folding.toggle(id);
    },
    onPaneClick: () => select(EMPTY_SELECTION),
  });
  return (
    <NoteEditingContext.Provider value={notes}>
      <ReactFlow<EditorNode, ArrowEdge>
        nodes={isFar ? NONE : boxes.nodes}
        edges={isFar ? NO_ARROWS : boxes.edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        colorMode={theme() as ColorMode}
        onInit={view.begin}
        minZoom={SMALLEST}
        onNodeDragStart={boxes.grab}
        onNodeDragStop={boxes.drop}
        onSelectionDragStart={boxes.grab}
        onSelectionDragStop={boxes.drop}
        connectionRadius={28}
        edgesReconnectable
        reconnectRadius={14}
        {...handlers}
        deleteKeyCode={null}
        autoPanOnNodeFocus={false}
        multiSelectionKeyCode={MULTI_SELECTION_KEYS}
        selectionKeyCode="Shift"
        selectionMode={SelectionMode.Partial}
        zoomOnDoubleClick={false}
        onlyRenderVisibleElements={shown.picture.boxes.length > LARGE_PICTURE}
        aria-label={t("graph.label")}
        ariaLabelConfig={useAriaLabels(mayChange)}
      >
        <Background gap={20} />
        <CanvasControls onWhole={view.showAll} />
        {isFar ? <FarCanvas shown={shown} /> : null}
        {children}
        {!isFar && shown.picture.boxes.length > 12 ? <MiniMap pannable zoomable className="max-md:!hidden" /> : null}
      </ReactFlow>
    </NoteEditingContext.Provider>
  );
}
