/** Lays what is tried over the canvas of the editor: pins, breakpoints, and the course of the trial that is shown. */
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo } from "react";
import { Overlay, OverlayContext } from "@/graph/overlay";
import { TriedContext } from "@/graph/tried";
import { useExecutionLog } from "../execution/log";
import { lookOf, type Story } from "../execution/story";
import { tryoutOf, useTryout } from "./tryout";

export function TrialOnCanvas({ id, children }: { id: string; children: ReactNode }) {
  const pins = useTryout(id, (now) => now.pins);
  const breakpoints = useTryout(id, (now) => now.breakpoints);
  const execution = useTryout(id, (now) => now.execution);
  const overlay = useMemo(() => new Overlay(), []);
  const tried = useMemo(
    () => ({ pinned: new Set(Object.keys(pins)), breakpoints: new Set(breakpoints) }),
    [pins, breakpoints],
  );
  useEffect(() => {
    if (execution === null) overlay.show(new Map(), new Map());
  }, [overlay, execution]);
  return (
    <TriedContext.Provider value={tried}>
      <OverlayContext.Provider value={overlay}>
        {children}
        {execution === null ? null : <Followed key={execution} id={id} execution={execution} overlay={overlay} />}
      </OverlayContext.Provider>
    </TriedContext.Provider>
  );
}

function Followed({ id, execution, overlay }: { id: string; execution: string; overlay: Overlay }) {
  const client = useQueryClient();
  const log = useExecutionLog(execution);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the story is one object that grows; `version` says so
  useEffect(() => {
    tryoutOf(id).getState().hear(log);
    overlay.show(...overlayOf(log.story));
  }, [id, overlay, log.version]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again per row
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ["execution", execution], exact: true });
  }, [client, execution, log.story.seq]);
  return null;
}

function overlayOf(story: Story): Parameters<Overlay["show"]> {
  const boxes: Parameters<Overlay["show"]>[0] = new Map();
  for (const [node, about] of story.nodes) {
    const look = lookOf(about);
    if (look === null) continue;
    const all = about.steps.length;
    const over = about.done + about.failed + about.cancelled;
    boxes.set(node, { look, count: all > 1 ? `${over}/${all}` : "", round: about.round });
  }
  return [boxes, story.taken];
}
