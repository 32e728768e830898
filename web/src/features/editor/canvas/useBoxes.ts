/** Nodes and edges of the canvas: positions from the document, overridden while the pointer or arrow keys move them. */

import { applyNodeChanges, type NodeChange } from "@xyflow/react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { framesOf } from "@/graph/layout/frames";
import type { Point } from "@/graph/layout/geometry";
import type { Picture } from "@/graph/model/picture";
import {
  arrowsOf,
  boxesOf,
  byId,
  type CanvasNode,
  framesAsNodes,
  isFolded,
  notesAsNodes,
  positionsOf,
  regionIn,
} from "@/graph/render/flowElements";
import type { VisiblePicture } from "@/graph/render/visiblePicture";
import type { ArrowEdge } from "@/graph/render/WorkflowEdge";
import { moveNodes } from "../document/edits";
import type { problemsByElement } from "../document/pointers";
import { useEditor } from "../editorContext";
import { carriedBy, type PlacedNode, withFrameContents } from "./frameContents";

export type EditorNode = CanvasNode;

/** Arrow keys move in steps; steps without this pause between them form one undo step. */
const DEBOUNCE_MS = 500;

export function useBoxes(about: {
  picture: Picture;
  shown: VisiblePicture;
  wrong: ReturnType<typeof problemsByElement>;
}) {
  const { picture, shown, wrong } = about;
  const { draft, store, selection } = useEditor();
  const before = useRef<Map<string, CanvasNode>>(new Map());
  const selected = useMemo(() => new Set(selection.nodes), [selection.nodes]);
  const made = useMemo(() => {
    const marks = { selected: (id: string) => selected.has(id), problem: (id: string) => wrong.nodes.get(id) };
    return [
      ...notesAsNodes(shown.notes, marks, before.current),
      ...boxesOf(shown.picture, shown.layout, marks, before.current),
    ];
  }, [shown, wrong, selected]);
  const hand = useRef({
    isHolding: false,
    rests: 0 as unknown as ReturnType<typeof setTimeout>,
    nudged: new Set<string>(),
  });
  const [standing, setStanding] = useState<PlacedNode[]>(made);
  useEffect(() => {
    before.current = byId<CanvasNode>(made);
    const { nudged } = hand.current;
    // A new check result must not reset positions that are being moved.
    setStanding((now) => {
      const on = byId<PlacedNode>(nudged.size > 0 ? now : []);
      return made.map((one) => {
        const position = nudged.has(one.id) ? on.get(one.id)?.position : undefined;
        return position ? { ...one, position } : one;
      });
    });
  }, [made]);

  const frames = useMemo(() => {
    const names = new Map(picture.boxes.map((one) => [one.id, one.name]));
    return framesAsNodes(framesOf(shown.picture.regions ?? [], positionsOf(standing)), names);
  }, [picture, shown, standing]);
  const nodes = useMemo<EditorNode[]>(() => [...frames, ...standing], [frames, standing]);
  const arrowsBefore = useRef<Map<string, ArrowEdge>>(new Map());
  const edges = useMemo(() => {
    const cut = new Set(selection.edges);
    const marks = { selected: (id: string) => cut.has(id), problem: (id: string) => wrong.edges.get(id) };
    return arrowsOf(shown.picture, shown, marks, arrowsBefore.current);
  }, [shown, wrong, selection.edges]);
  useEffect(() => {
    arrowsBefore.current = byId(edges);
  }, [edges]);

  /** Positions of all nodes, including folded ones. */
  const places = useMemo(() => new Map([...shown.unfoldedLayout.positions, ...positionsOf(made)]), [shown, made]);

  const commit = useCallback(
    (boxes: readonly PlacedNode[]) => {
      const to = new Map<string, Point>();
      for (const one of withFrameContents(boxes, made)) {
        if (!isFolded(one.id)) to.set(one.id, one.position);
        else {
          const was = places.get(one.id);
          const group = picture.regions?.find((group) => group.id === regionIn(one.id));
          if (!was || !group) continue;
          // The nodes of a folded region move with it.
          for (const id of group.members) {
            const at = places.get(id);
            if (at) to.set(id, { x: at.x + one.position.x - was.x, y: at.y + one.position.y - was.y });
          }
        }
      }
      const { shown: now, act } = store.getState();
      const changes = moveNodes(now, places, to);
      if (changes.length > 0) act(...changes);
    },
    [places, picture, store, made],
  );

  const latest = useRef({ standing, commit, made });
  useLayoutEffect(() => {
    latest.current = { standing, commit, made };
  }, [standing, commit, made]);
  const follow = useCallback((changes: NodeChange<EditorNode>[]) => {
    const resizing = changes.some((one) => one.type === "dimensions" && one.resizing !== undefined);
    // The editor stores the new rectangle at the end of the gesture; what is inside a frame stays.
    if (resizing) return setStanding((now) => applyNodeChanges(changes as NodeChange<PlacedNode>[], now));
    const moves = changes.filter((one) => one.type === "position");
    if (moves.length === 0) return;
    const carried = carriedBy(moves, latest.current.made);
    moves.push(...carried);
    setStanding((now) => applyNodeChanges(moves as NodeChange<PlacedNode>[], now));
    if (hand.current.isHolding) return;
    for (const one of moves) hand.current.nudged.add(one.id);
    clearTimeout(hand.current.rests);
    hand.current.rests = setTimeout(() => {
      const { nudged } = hand.current;
      const moving = latest.current.standing.filter((one) => nudged.has(one.id));
      nudged.clear();
      latest.current.commit(moving);
    }, DEBOUNCE_MS);
  }, []);
  const nudge = useCallback(
    (ids: readonly string[], by: Point) => {
      const moving = latest.current.standing.filter((one) => ids.includes(one.id));
      const to = ({ x, y }: Point) => ({ x: x + by.x, y: y + by.y });
      follow(moving.map((one) => ({ type: "position", id: one.id, position: to(one.position) })));
    },
    [follow],
  );
  const grab = useCallback(() => {
    hand.current.isHolding = true;
  }, []);
  const drop = useCallback((_: unknown, nodeOrAll: unknown, all?: EditorNode[]) => {
    hand.current.isHolding = false;
    const dragged = (all ?? nodeOrAll) as EditorNode[];
    latest.current.commit(dragged.filter((one): one is PlacedNode => one.type !== "frame"));
  }, []);
  useEffect(() => () => clearTimeout(hand.current.rests), []);
  return { nodes, edges, places, follow, nudge, grab, drop, isEmpty: draft.shown.nodes.length === 0 };
}
