/** Connection points of a box: one for each outcome, and exits after errors and time-outs while the box is selected. */
import { Handle, Position } from "@xyflow/react";
import { useContext } from "react";
import { useTranslation } from "react-i18next";
import { BOX, portOffset } from "@/graph/layout/geometry";
import type { Box, Port } from "@/graph/model/picture";
import { CanvasStateContext } from "./canvasState";

/** Horizontal positions of the exits at the bottom of a box, by the kind of outcome. */
export const EXIT_PLACES = { timeout: BOX.width * 0.3, error: BOX.width * 0.86 } as const;

/** Width of the border of a box: handles are placed inside it. */
const BORDER = 1.5;
const DOT = "!size-2.5 !rounded-full !border !bg-surface";
const NO_EXITS = new Set(["start", "end", "note"]);

export function Ports({ box, isSelected }: { box: Box; isSelected: boolean }) {
  const isEditing = useContext(CanvasStateContext) !== null;
  const ports = box.ports ?? [];
  return (
    <>
      <Handle type="target" position={Position.Left} className={`${DOT} !border-line-strong`} />
      {ports.length === 0 && box.type !== "end" && box.type !== "note" ? (
        <Handle type="source" position={Position.Right} className={`${DOT} !border-line-strong`} />
      ) : null}
      {ports.map((port, nth) => (
        <OutcomePort
          key={port.id}
          port={port}
          top={BOX.height / 2 + portOffset({ nth, count: ports.length }) - BORDER}
          isNamed={isEditing && !port.isFollowed}
        />
      ))}
      {isEditing && !NO_EXITS.has(box.type) ? <Exits ports={ports} isShown={isSelected} /> : null}
    </>
  );
}

/** An answer leads to one node only, so nothing more can be drawn from a port that an edge follows. */
function OutcomePort({ port, top, isNamed }: { port: Port; top: number; isNamed: boolean }) {
  const { t } = useTranslation();
  return (
    <Handle
      id={port.id}
      type="source"
      position={Position.Right}
      isConnectableStart={!port.isFollowed || port.kind === "other"}
      title={t("graph.outcome", { name: port.name })}
      style={{ top }}
      className={`${DOT} ${port.kind === "error" || port.kind === "timeout" ? "!border-failed" : "!border-line-strong"}`}
    >
      {isNamed ? (
        <span className="pointer-events-none absolute top-1/2 left-3.5 max-w-28 -translate-y-1/2 truncate rounded bg-sunken px-1 text-[11px] leading-4 text-ink-soft">
          <bdi>{port.name}</bdi>
        </span>
      ) : null}
    </Handle>
  );
}

function Exits({ ports, isShown }: { ports: readonly Port[]; isShown: boolean }) {
  const { t } = useTranslation();
  return (["timeout", "error"] as const)
    .filter((kind) => !ports.some((port) => port.id === kind))
    .map((kind) => (
      <Handle
        key={kind}
        id={kind}
        type="source"
        position={Position.Bottom}
        title={t("graph.outcome", { name: t(`outcome.${kind}`) })}
        style={{ left: EXIT_PLACES[kind] }}
        className={`${DOT} !border-failed ${isShown ? "" : "!pointer-events-none opacity-0"}`}
      >
        {isShown ? (
          <span className="pointer-events-none absolute top-3 left-1/2 -translate-x-1/2 rounded bg-sunken px-1 text-[10px] leading-4 whitespace-nowrap text-failed">
            {t(`outcome.${kind}`)}
          </span>
        ) : null}
      </Handle>
    ));
}
