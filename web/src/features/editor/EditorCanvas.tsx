/** The picture of a workflow, to change: boxes are put, moved, connected and removed; each is one undo. */
import {
  Background,
  type ColorMode,
  type EdgeChange,
  MiniMap,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
} from "@xyflow/react";
import { type DragEvent, type FocusEvent, type MouseEvent, useCallback, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Problem } from "@/api/http";
import type { Definition } from "@/api/views";
import { CanvasControls } from "@/graph/CanvasControls";
import { Drawn, DrawnContext } from "@/graph/drawn";
import { FarCanvas, useComingNear, useIsFar } from "@/graph/FarCanvas";
import { FoldingContext, useFolding, useFoldingOf } from "@/graph/folding";
import { EDGE_TYPES, groupIn, isFolded, NODE_TYPES } from "@/graph/nodes";
import "@xyflow/react/dist/base.css";
import "@/graph/canvas.css";
import { BOX, MANY, type Picture, pictureOf } from "@/graph/picture";
import type { Point } from "@/graph/quickLayout";
import { useShown } from "@/graph/shown";
import { useSpoken } from "@/graph/spoken";
import { isWhole, SMALLEST, viewOf, wholeViewOf } from "@/graph/viewport";
import type { ArrowEdge } from "@/graph/WorkflowEdge";
import { theme } from "@/theme";
import { useTrialEntries } from "../trying/useTrialEntries";
import { type EditorNode, useBoxes } from "./boxes";
import { type Asked, CanvasDialogs } from "./CanvasDialogs";
import { CanvasMenu, type MenuEntry } from "./CanvasMenu";
import { CanvasTools } from "./CanvasTools";
import { useConnecting } from "./connecting";
import { free, openEnd } from "./edits";
import { useCanvasKeys } from "./keys";
import { focusFirst, focusPicked, pickedBy } from "./pointers";
import { NOTHING, type Picked, pickedOf, stillThere } from "./selection";
import { useVerbs } from "./verbs";
import { useWork } from "./work";

export const DRAGGED = "application/x-pointsman-node";

const NONE: EditorNode[] = [];
const NO_ARROWS: ArrowEdge[] = [];

export function EditorCanvas() {
  const { t, i18n } = useTranslation();
  const { draft } = useWork();
  const picture = useMemo(() => pictureOf(draft.shown, i18n.language, t), [draft.shown, i18n.language, t]);
  const folding = useFoldingOf(picture.workflow ?? "");
  const drawn = useMemo(() => new Drawn(), []);
  return (
    <ReactFlowProvider>
      <FoldingContext.Provider value={folding}>
        <DrawnContext.Provider value={drawn}>
          <Inner picture={picture} drawn={drawn} />
        </DrawnContext.Provider>
      </FoldingContext.Provider>
    </ReactFlowProvider>
  );
}

function Inner({ picture, drawn }: { picture: Picture; drawn: Drawn }) {
  const { t } = useTranslation();
  const flow = useReactFlow<EditorNode, ArrowEdge>();
  const box = useRef<HTMLDivElement>(null);
  const { draft, checked, selection, select, pick, stage, panel, show, node: picked, mayChange } = useWork();
  const spoken = useSpoken(mayChange);
  const folding = useFolding();
  const definition = draft.shown;
  const shown = useShown(picture, folding.closed);
  const wrong = useMemo(() => wrongNodes(definition, checked.problems), [definition, checked.problems]);
  const boxes = useBoxes({ picture, shown, wrong });
  const verbs = useVerbs(picture);
  const connecting = useConnecting(drawn);
  const isFar = useIsFar(shown.picture.boxes.length);
  const comeNear = useComingNear();
  const [asked, ask] = useState<Asked>(null);
  const [pointed, point] = useState<{ node?: string; edge?: string; at: Point }>({ at: { x: 0, y: 0 } });

  drawn.insert = (arrow) => ask({ kind: "add", adding: { on: arrow } });
  stage.places = () => boxes.places;
  stage.middle = () => {
    const view = box.current?.getBoundingClientRect();
    const at = view ? { x: view.x + view.width / 2, y: view.y + view.height / 2 } : { x: 0, y: 0 };
    return flow.screenToFlowPosition(at);
  };
  const pickedNow = useRef<Picked | null>(null);
  pickedNow.current = pickedOf(stillThere(selection, definition));
  stage.focus = () => focusPicked(box.current, () => pickedNow.current);
  stage.reveal = (ids) => {
    if (ids.length === 0) requestAnimationFrame(() => showAll());
    else requestAnimationFrame(() => reveal(ids));
  };
  const showAll = () => void flow.setViewport(wholeViewOf(drawnNow.current, box.current));
  const drawnNow = useRef(shown);
  drawnNow.current = shown;
  const latest = useRef(boxes.places);
  latest.current = boxes.places;
  const reveal = (ids: readonly string[]) => {
    const view = box.current;
    const stands = ids.flatMap((id) => latest.current.get(id) ?? []);
    const first = stands[0];
    if (!view || !first) return;
    const { x, y, zoom } = flow.getViewport();
    const isSeen = stands.some((at) => {
      const [left, top] = [at.x * zoom + x, at.y * zoom + y];
      return (
        left >= 0 &&
        top >= 0 &&
        left + BOX.width * zoom <= view.clientWidth &&
        top + BOX.height * zoom <= view.clientHeight
      );
    });
    if (isSeen) return;
    // What is small is seen whole: one looks at the new box and at what leads to it.
    const all = viewOf(drawnNow.current, view);
    if (isWhole(drawnNow.current, view, all)) return void flow.setViewport(all, { duration: 200 });
    const to = { zoom: Math.max(zoom, 0.6), duration: 200 };
    void flow.setCenter(first.x + BOX.width / 2, first.y + BOX.height / 2, to);
  };

  const change = (changes: (NodeChange<EditorNode> | EdgeChange<ArrowEdge>)[], kind: "nodes" | "edges") => {
    const now = new Set(stillThere(selection, definition)[kind]);
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
  const pending = useRef<typeof selection | null>(null);

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
    const node = target.closest<HTMLElement>(".react-flow__node-box")?.dataset.id;
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

  const quickAdd = useCallback(() => {
    const after = picked?.id ?? openEnd(definition);
    const middle = stage.middle();
    const at = free({ x: middle.x - BOX.width / 2, y: middle.y - BOX.height / 2 }, stage.places());
    ask({ kind: "add", adding: after === undefined ? { at } : { after } });
  }, [picked, stage, definition]);
  useCanvasKeys({
    ...verbs,
    add: quickAdd,
    find: () => ask({ kind: "find" }),
    help: () => ask({ kind: "help" }),
    connect: () => {
      const from = pickedNow.current;
      if (!from) verbs.tell(t("canvas.nothingPicked"));
      else if (mayChange) ask({ kind: "connect", from });
    },
    move: ({ x, y }) => boxes.nudge(selection.nodes, { x, y }),
    remove: () => {
      verbs.remove();
      stage.focus();
    },
    edit: () => {
      if (pickedNow.current === null) return verbs.tell(t("canvas.nothingPicked"));
      show("properties");
      focusFirst();
    },
    leave: () => stage.focus(),
    outline: () => {
      stage.isOutlineWanted = true;
      show("outline");
    },
    none: () => select(NOTHING),
    all: verbs.selectAll,
  });
  /** What the keys come to is what they work with: nobody has to select it first. */
  const follow = (event: FocusEvent) => {
    const at = pickedBy(event.target);
    if (!at || selection[at.kind === "node" ? "nodes" : "edges"].includes(at.id)) return;
    pick(at);
    reveal([picture.arrows.find((arrow) => arrow.id === at.id)?.source ?? at.id]);
  };
  const copy = (verb: "copy" | "cut") => {
    // The menu has the focus until it is closed; the page hears of what is copied only after that.
    setTimeout(() => document.execCommand(verb), 50);
  };
  const paste = async () => {
    try {
      verbs.paste(await navigator.clipboard.readText(), pointed.at);
    } catch {
      verbs.tell(t("canvas.pasteByKey"));
    }
  };
  const trialEntries = useTrialEntries(definition.nodes.find((one) => one.id === pointed.node));
  const group = picture.groups?.find((one) => one.id === pointed.node);
  const parts: MenuEntry[][] = [
    pointed.edge !== undefined
      ? [{ name: "insert", act: () => ask({ kind: "add", adding: { on: pointed.edge as string } }) }]
      : [
          {
            name: pointed.node ? "addAfter" : "add",
            keys: "A",
            act: () => ask({ kind: "add", adding: pointed.node ? { after: pointed.node } : { at: pointed.at } }),
          },
        ],
    pointed.node
      ? [
          { name: "copy", keys: "Ctrl C", act: () => copy("copy") },
          { name: "cut", keys: "Ctrl X", act: () => copy("cut") },
          { name: "duplicate", keys: "Ctrl D", act: verbs.duplicate },
          {
            name: "connect",
            keys: "C",
            act: () => ask({ kind: "connect", from: { kind: "node", id: pointed.node as string } }),
          },
        ]
      : [],
    trialEntries,
    pointed.node || pointed.edge
      ? [
          ...(group ? [{ name: "fold", keys: "G", act: () => folding.toggle(group.id) }] : []),
          { name: "remove", keys: "Del", act: verbs.remove },
        ]
      : [
          { name: "paste", keys: "Ctrl V", act: () => void paste() },
          { name: "all", keys: "Ctrl A", act: verbs.selectAll },
          { name: "tidy", keys: "T", act: verbs.tidy },
        ],
  ];

  return (
    <CanvasMenu parts={parts}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the pointer is one way; keys, menus and the outline are the others */}
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
        <ReactFlow<EditorNode, ArrowEdge>
          nodes={isFar ? NONE : boxes.nodes}
          edges={isFar ? NO_ARROWS : boxes.edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          colorMode={theme() as ColorMode}
          onInit={() => {
            void flow.setViewport(viewOf(shown, box.current));
            if (stage.wanted !== null) reveal([stage.wanted]);
          }}
          minZoom={SMALLEST}
          onNodesChange={(changes) => {
            boxes.follow(changes);
            change(changes, "nodes");
          }}
          onEdgesChange={(changes) => change(changes, "edges")}
          onNodeDragStart={boxes.grab}
          onNodeDragStop={boxes.letGo}
          onSelectionDragStart={boxes.grab}
          onSelectionDragStop={boxes.letGo}
          {...connecting.props}
          onConnectEnd={(event, state) => {
            connecting.end();
            const from = state.fromNode?.id;
            if (from === undefined || state.toNode || !("clientX" in event)) return;
            if (connecting.isDroppedOnBox(event, state) || state.fromHandle?.type !== "source") return;
            ask({ kind: "add", adding: { after: from, at: at(event) } });
          }}
          onEdgeMouseEnter={(_, edge) => edge.data?.arrow.isImplied || drawn.hover(edge.id)}
          onEdgeMouseLeave={() => drawn.hover(null)}
          onNodeDoubleClick={(_, node) => {
            const id = isFolded(node.id) ? groupIn(node.id) : node.id;
            if (picture.groups?.some((one) => one.id === id)) folding.toggle(id);
          }}
          deleteKeyCode={null}
          autoPanOnNodeFocus={false}
          multiSelectionKeyCode={["Control", "Meta", "Shift"]}
          selectionKeyCode="Shift"
          selectionMode={SelectionMode.Partial}
          zoomOnDoubleClick={false}
          onPaneClick={() => select(NOTHING)}
          onlyRenderVisibleElements={shown.picture.boxes.length > MANY}
          aria-label={t("graph.label")}
          ariaLabelConfig={spoken}
        >
          <Background gap={20} />
          <CanvasControls onWhole={showAll} />
          {isFar ? <FarCanvas shown={shown} /> : null}
          <CanvasTools
            isTidying={verbs.isTidying}
            onAdd={quickAdd}
            onFind={() => ask({ kind: "find" })}
            onTidy={verbs.tidy}
            onHelp={() => ask({ kind: "help" })}
          />
          {!isFar && shown.picture.boxes.length > 12 ? <MiniMap pannable zoomable className="max-md:!hidden" /> : null}
        </ReactFlow>
        <p role="status" className="pointer-events-none absolute bottom-3 left-1/2 -translate-x-1/2">
          {verbs.told ? (
            <span className="block max-w-[80vw] rounded-md border border-line-strong bg-raised px-3 py-1.5 shadow-lg">
              {verbs.told}
            </span>
          ) : null}
        </p>
        <CanvasDialogs asked={asked} onClose={() => ask(null)} onAdd={verbs.add} />
      </div>
    </CanvasMenu>
  );
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
