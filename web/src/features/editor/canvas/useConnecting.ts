/** Connect nodes with the pointer: boxes that cannot be connected show the reason; the end of an edge can be moved. */
import type { Connection, FinalConnectionState, IsValidConnection, OnConnectStart } from "@xyflow/react";
import { useRef } from "react";
import { useTranslation } from "react-i18next";
import { outcomesOf } from "@/graph/model/outcomes";
import type { CanvasState } from "@/graph/render/canvasState";
import type { ArrowEdge } from "@/graph/render/WorkflowEdge";
import { edgeNamed, reconnectEdge } from "../document/edits";
import { useEditor } from "../editorContext";
import { refusalOf, refusalsFrom } from "./connectionRules";
import type { Drawing } from "./drawing";

export function useConnecting(drawn: CanvasState, drawing: Drawing) {
  const { t } = useTranslation();
  const { draft, pick } = useEditor();
  const definition = draft.shown;
  const reconnecting = useRef<string | null>(null);
  const find = (id: string | null) => definition.nodes.find((node) => node.id === id);
  const end = () => {
    reconnecting.current = null;
    drawn.refuse(null);
  };
  const isValidConnection: IsValidConnection<ArrowEdge> = ({ source, target }) => {
    const from = find(source);
    const to = find(target);
    const but = reconnecting.current === null ? undefined : edgeNamed(definition, reconnecting.current);
    return from !== undefined && to !== undefined && refusalOf(definition, from, to, but) === null;
  };
  const onConnectStart: OnConnectStart = (_, { nodeId, handleType }) => {
    if (nodeId === null || handleType === null) return;
    const refusals = [...refusalsFrom(definition, nodeId, handleType)].map(
      ([id, why]) => [id, t(`connect.${why}`)] as const,
    );
    drawn.refuse(new Map(refusals));
  };
  const connect = ({ source, target, sourceHandle }: Connection) => drawing.connect(source, target, sourceHandle);
  return {
    end,
    /** Connect to a box if the connection is dropped on it beside its handles. Returns whether a box was there. */
    isDroppedOnBox: (at: { clientX: number; clientY: number }, { fromNode, fromHandle }: FinalConnectionState) => {
      const under = document.elementFromPoint(at.clientX, at.clientY);
      const box = under?.closest<HTMLElement>(".react-flow__node-box")?.dataset.id;
      if (box === undefined || !fromNode) return false;
      const [source, target] = fromHandle?.type === "target" ? [box, fromNode.id] : [fromNode.id, box];
      const sourceHandle = fromHandle?.type === "source" ? (fromHandle.id ?? null) : null;
      const asked = { source, target, sourceHandle, targetHandle: null };
      if (source !== target && isValidConnection(asked)) connect(asked);
      return true;
    },
    handlers: {
      isValidConnection,
      onConnectStart,
      onConnect: connect,
      onReconnectStart: (_: unknown, edge: ArrowEdge) => {
        reconnecting.current = edge.id;
      },
      onReconnect: (edge: ArrowEdge, { source, target, sourceHandle }: Connection) => {
        const from = find(source);
        const isMoved = source !== edge.source || sourceHandle !== (edge.sourceHandle ?? null);
        const outcome =
          from && isMoved ? outcomesOf(from, definition).find((one) => one.id === sourceHandle) : undefined;
        const changes = reconnectEdge(definition, edge.id, { source, target }, outcome);
        if (changes.length === 0) return;
        draft.act(...changes);
        pick(null);
      },
      onReconnectEnd: (_: unknown, __: unknown, ___: unknown, ____: FinalConnectionState) => end(),
    },
  };
}
