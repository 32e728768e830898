/** A picture as nodes and edges of React Flow. An unchanged element keeps its object. */

import { MarkerType, type NodeHandle, Position } from "@xyflow/react";
import { type Frame, frameName } from "@/graph/layout/frames";
import type { Layout, Point } from "@/graph/layout/geometry";
import { BOX, portOffset } from "@/graph/layout/geometry";
import type { PlacedNote } from "@/graph/layout/notes";
import type { Arrow, Box, Picture } from "@/graph/model/picture";
import type { Routes } from "@/graph/routing/routes";
import { ariaRole } from "./ariaLabels";
import type { FoldedBox } from "./FoldedNode";
import { FoldedNode } from "./FoldedNode";
import type { FrameBox } from "./FrameNode";
import { FrameNode } from "./FrameNode";
import { EXIT_PLACES } from "./Ports";
import type { ProblemMark } from "./ProblemSign";
import { type NoteNode, StickyNote } from "./StickyNote";
import { type ArrowEdge, WorkflowEdge } from "./WorkflowEdge";
import { type BoxNode, WorkflowNode } from "./WorkflowNode";

export type CanvasNode = BoxNode | FoldedBox | FrameBox | NoteNode;

export const NODE_TYPES = { box: WorkflowNode, folded: FoldedNode, frame: FrameNode, note: StickyNote };
export const EDGE_TYPES = { arrow: WorkflowEdge };
export const MARKER = { type: MarkerType.ArrowClosed, width: 16, height: 16, color: "var(--line-strong)" } as const;
const FAILED_MARKER = { ...MARKER, color: "var(--failed)" } as const;

/** All boxes have the same size, so React Flow need not measure them before it draws edges. */
const MEASURED = { ...BOX };
const HANDLE = 10;
const TARGET = handle("target", Position.Left, 0, BOX.height / 2);
const EXITS = Object.entries(EXIT_PLACES).map(([id, x]) => handle("source", Position.Bottom, x, BOX.height, id));

function handle(type: "source" | "target", position: Position, x: number, y: number, id?: string): NodeHandle {
  const at = { x: x - HANDLE / 2, y: y - HANDLE / 2, width: HANDLE, height: HANDLE };
  return { type, position, ...at, ...(id === undefined ? {} : { id }) };
}

function handlesOf({ ports = [] }: Box): NodeHandle[] {
  const count = ports.length;
  const sources =
    count === 0
      ? [handle("source", Position.Right, BOX.width, BOX.height / 2)]
      : ports.map(({ id }, nth) =>
          handle("source", Position.Right, BOX.width, BOX.height / 2 + portOffset({ nth, count }), id),
        );
  return [TARGET, ...sources, ...EXITS.filter((exit) => !ports.some((port) => port.id === exit.id))];
}

/** Marks of boxes or arrows. */
export interface ElementMarks {
  selected: (id: string) => boolean;
  problem?: (id: string) => ProblemMark | undefined;
}

/** Boxes and folded regions. `before`: the result of the previous call. */
export function boxesOf(
  picture: Picture,
  layout: Layout,
  marks: ElementMarks,
  before: ReadonlyMap<string, CanvasNode>,
): (BoxNode | FoldedBox)[] {
  const domAttributes = ariaRole("node");
  return picture.boxes.map((box) => {
    const position = box.position ?? layout.positions.get(box.id) ?? { x: 0, y: 0 };
    const problem = marks.problem?.(box.id);
    const selected = marks.selected(box.id);
    const was = before.get(box.id);
    if (
      was &&
      (was.type === "box" || was.type === "folded") &&
      was.data.box === box &&
      was.selected === selected &&
      was.position.x === position.x &&
      was.position.y === position.y &&
      (was.type === "folded" || was.data.problem?.text === problem?.text)
    )
      return was;
    const shape = { id: box.id, position, selected, measured: MEASURED, handles: handlesOf(box) };
    if (box.foldedNodes)
      return {
        ...shape,
        type: "folded",
        data: { box, group: regionIn(box.id) },
        deletable: false,
        connectable: false,
        domAttributes,
      };
    return { ...shape, type: "box", data: problem ? { box, problem } : { box }, ariaLabel: box.name, domAttributes };
  });
}

/** Below the regions and the edges. React Flow raises selected nodes by 1000, which would cover the nodes inside. */
const FRAME_Z = -2;
const SELECTED_FRAME_Z = FRAME_Z - 1000;

/** Notes and frames. `before`: the result of the previous call. */
export function notesAsNodes(
  notes: readonly PlacedNote[],
  marks: ElementMarks,
  before: ReadonlyMap<string, CanvasNode>,
): NoteNode[] {
  const domAttributes = ariaRole("node");
  return notes.map(({ note, x, y, width, height }) => {
    const selected = marks.selected(note.id);
    const was = before.get(note.id);
    const isSame =
      was?.type === "note" &&
      was.selected === selected &&
      JSON.stringify([was.data.note, was.position]) === JSON.stringify([note, { x, y }]);
    if (isSame) return was;
    return {
      id: note.id,
      type: "note",
      position: { x, y },
      width,
      height,
      measured: { width, height },
      data: { note },
      selected,
      connectable: false,
      ariaLabel: note.name,
      domAttributes,
      ...(note.isFrame ? { style: { pointerEvents: "none" }, zIndex: selected ? SELECTED_FRAME_Z : FRAME_Z } : {}),
    };
  });
}

/** The region that a folded box represents. */
export const regionIn = (id: string) => id.slice(frameName("").length);

export const isFolded = (id: string) => id.startsWith(frameName(""));

export function framesAsNodes(frames: readonly Frame[], names: ReadonlyMap<string, string>): FrameBox[] {
  const domAttributes = ariaRole("node");
  return frames.map(({ region: group, x, y, width, height }) => ({
    id: frameName(group.id),
    type: "frame",
    position: { x, y },
    width,
    height,
    measured: { width, height },
    data: { group, name: names.get(group.id) ?? group.id },
    domAttributes,
    style: { pointerEvents: "none" },
    selectable: false,
    draggable: false,
    connectable: false,
    deletable: false,
    focusable: false,
    zIndex: -1,
  }));
}

export function arrowsOf(
  picture: Picture,
  { routes }: Routes,
  marks: ElementMarks,
  before: ReadonlyMap<string, ArrowEdge>,
): ArrowEdge[] {
  const names = new Map(picture.boxes.map((box) => [box.id, box.name]));
  const domAttributes = ariaRole("edge");
  return picture.arrows.map((arrow) => {
    const was = before.get(arrow.id);
    const isSelected = marks.selected(arrow.id);
    const problem = marks.problem?.(arrow.id);
    const line = routes.get(arrow.id);
    const ends = `${names.get(arrow.source)} → ${names.get(arrow.target)}`;
    const ariaLabel = arrow.label ? `${ends}: ${arrow.label}` : ends;
    if (
      was?.data &&
      was.selected === isSelected &&
      isSame(was.data.arrow, arrow) &&
      was.data.line === line &&
      was.data.problem?.text === problem?.text &&
      was.ariaLabel === ariaLabel
    )
      return was;
    const isDerived = arrow.isImplied || isFolded(arrow.source) || isFolded(arrow.target);
    return {
      id: arrow.id,
      type: "arrow",
      source: arrow.source,
      target: arrow.target,
      ...(arrow.port ? { sourceHandle: arrow.port.id } : {}),
      data: { arrow, ...(line ? { line } : {}), ...(problem ? { problem } : {}) },
      markerEnd: arrow.isError ? FAILED_MARKER : MARKER,
      selected: isSelected,
      ariaLabel,
      domAttributes,
      ...(arrow.isImplied ? { selectable: false, focusable: false, deletable: false } : {}),
      ...(isDerived ? { reconnectable: false } : {}),
    };
  });
}

function isSame(a: Arrow, b: Arrow): boolean {
  return (
    a.source === b.source &&
    a.target === b.target &&
    a.label === b.label &&
    a.port?.id === b.port?.id &&
    a.isError === b.isError &&
    a.isImplied === b.isImplied
  );
}

export function byId<T extends { id: string }>(all: readonly T[]): Map<string, T> {
  return new Map(all.map((one) => [one.id, one]));
}

export function positionsOf(nodes: readonly CanvasNode[]): Map<string, Point> {
  return new Map(nodes.flatMap((node) => (node.type === "frame" ? [] : [[node.id, node.position]])));
}
