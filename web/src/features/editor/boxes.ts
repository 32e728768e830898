/** What stands on the canvas: as the document says, and meanwhile where a hand or the arrow keys are moving it. */
import { applyNodeChanges, type NodeChange } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { FoldedBox } from "@/graph/FoldedNode";
import { framesOf } from "@/graph/frames";
import { arrowsOf, boxesOf, byId, type CanvasNode, framesAsNodes, groupIn, isFolded, placesOf } from "@/graph/nodes";
import type { Picture } from "@/graph/picture";
import type { Point } from "@/graph/quickLayout";
import type { Shown } from "@/graph/shown";
import type { ArrowEdge } from "@/graph/WorkflowEdge";
import type { BoxNode } from "@/graph/WorkflowNode";
import { moved } from "./edits";
import { useWork } from "./work";

export type EditorNode = CanvasNode;
type Standing = BoxNode | FoldedBox;

/** Arrow keys move in steps; what rests for so long is one undo. */
const RESTS_MS = 500;

export function useBoxes(about: { picture: Picture; shown: Shown; wrong: ReadonlyMap<string, "error" | "warning"> }) {
  const { picture, shown, wrong } = about;
  const { draft, store, selection } = useWork();
  const before = useRef<Map<string, CanvasNode>>(new Map());
  const selected = useMemo(() => new Set(selection.nodes), [selection.nodes]);
  const made = useMemo(() => {
    const marks = { selected: (id: string) => selected.has(id), problem: (id: string) => wrong.get(id) };
    return boxesOf(shown.picture, shown.layout, marks, before.current);
  }, [shown, wrong, selected]);
  const hand = useRef({
    isHolding: false,
    rests: 0 as unknown as ReturnType<typeof setTimeout>,
    nudged: new Set<string>(),
  });
  const [standing, setStanding] = useState<Standing[]>(made);
  useEffect(() => {
    before.current = byId<CanvasNode>(made);
    const { nudged } = hand.current;
    // What the server says meanwhile does not put back what is on its way.
    setStanding((now) => {
      const on = byId<Standing>(nudged.size > 0 ? now : []);
      return made.map((one) => {
        const position = nudged.has(one.id) ? on.get(one.id)?.position : undefined;
        return position ? { ...one, position } : one;
      });
    });
  }, [made]);

  const frames = useMemo(() => {
    const names = new Map(picture.boxes.map((one) => [one.id, one.name]));
    return framesAsNodes(framesOf(shown.picture.groups ?? [], placesOf(standing)), names);
  }, [picture, shown, standing]);
  const nodes = useMemo<EditorNode[]>(() => [...frames, ...standing], [frames, standing]);
  const arrowsBefore = useRef<Map<string, ArrowEdge>>(new Map());
  const edges = useMemo(() => {
    const cut = new Set(selection.edges);
    return arrowsOf(shown.picture, shown, (id) => cut.has(id), arrowsBefore.current);
  }, [shown, selection.edges]);
  useEffect(() => {
    arrowsBefore.current = byId(edges);
  }, [edges]);

  /** Where every node stands, also those that are folded away. */
  const places = useMemo(() => new Map([...shown.whole.places, ...placesOf(made)]), [shown, made]);

  const commit = useCallback(
    (boxes: readonly Standing[]) => {
      const to = new Map<string, Point>();
      for (const one of boxes) {
        if (!isFolded(one.id)) to.set(one.id, one.position);
        else {
          const was = places.get(one.id);
          const group = picture.groups?.find((group) => group.id === groupIn(one.id));
          if (!was || !group) continue;
          // What is folded behind it goes along.
          for (const id of group.members) {
            const at = places.get(id);
            if (at) to.set(id, { x: at.x + one.position.x - was.x, y: at.y + one.position.y - was.y });
          }
        }
      }
      const { shown: now, act } = store.getState();
      const changes = moved(now, places, to);
      if (changes.length > 0) act(...changes);
    },
    [places, picture, store],
  );

  const latest = useRef(standing);
  latest.current = standing;
  const done = useRef(commit);
  done.current = commit;
  const follow = useCallback((changes: NodeChange<EditorNode>[]) => {
    const moves = changes.filter((one) => one.type === "position");
    if (moves.length === 0) return;
    setStanding((now) => applyNodeChanges(moves as NodeChange<Standing>[], now));
    if (hand.current.isHolding) return;
    for (const one of moves) hand.current.nudged.add(one.id);
    clearTimeout(hand.current.rests);
    hand.current.rests = setTimeout(() => {
      const { nudged } = hand.current;
      const moving = latest.current.filter((one) => nudged.has(one.id));
      nudged.clear();
      done.current(moving);
    }, RESTS_MS);
  }, []);
  const nudge = useCallback(
    (ids: readonly string[], by: Point) => {
      const moving = latest.current.filter((one) => ids.includes(one.id));
      const to = ({ x, y }: Point) => ({ x: x + by.x, y: y + by.y });
      follow(moving.map((one) => ({ type: "position", id: one.id, position: to(one.position) })));
    },
    [follow],
  );
  const grab = useCallback(() => {
    hand.current.isHolding = true;
  }, []);
  const letGo = useCallback((_: unknown, nodeOrAll: unknown, all?: EditorNode[]) => {
    hand.current.isHolding = false;
    const dragged = (all ?? nodeOrAll) as EditorNode[];
    done.current(dragged.filter((one): one is Standing => one.type !== "frame"));
  }, []);
  useEffect(() => () => clearTimeout(hand.current.rests), []);
  return { nodes, edges, places, follow, nudge, grab, letGo, isEmpty: draft.shown.nodes.length === 0 };
}
