/** Lays what is tried over the canvas of the editor: pins, breakpoints, and the course of the trial that is shown. */
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo } from "react";
import type { DraftStore } from "@/features/editor/document/draft";
import { Overlay, OverlayContext } from "@/graph/render/overlay";
import { PartialRunContext } from "@/graph/render/partialRunMarks";
import { overlayOf } from "../execution/focus";
import { useExecutionLog } from "../execution/log";
import { followOtherWindows, followRenames } from "./followRenames";
import { tryoutOf, useTryout } from "./tryout";

export function TrialOnCanvas(props: { id: string; store: DraftStore; children: ReactNode }) {
  const { id, store, children } = props;
  const pins = useTryout(id, (now) => now.pins);
  const breakpoints = useTryout(id, (now) => now.breakpoints);
  const execution = useTryout(id, (now) => now.execution);
  const overlay = useMemo(() => new Overlay(), []);
  const tried = useMemo(
    () => ({ pinned: new Set(Object.keys(pins)), breakpoints: new Set(breakpoints) }),
    [pins, breakpoints],
  );
  useEffect(() => followRenames(id, store), [id, store]);
  useEffect(() => followOtherWindows(id), [id]);
  useEffect(() => {
    if (execution === null) overlay.show(new Map(), new Map());
  }, [overlay, execution]);
  return (
    <PartialRunContext.Provider value={tried}>
      <OverlayContext.Provider value={overlay}>
        {children}
        {execution === null ? null : <Followed key={execution} id={id} execution={execution} overlay={overlay} />}
      </OverlayContext.Provider>
    </PartialRunContext.Provider>
  );
}

function Followed({ id, execution, overlay }: { id: string; execution: string; overlay: Overlay }) {
  const client = useQueryClient();
  const log = useExecutionLog(execution);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the story is one object that grows; `version` says so
  useEffect(() => {
    tryoutOf(id).getState().hear(log);
    overlay.show(...overlayOf(log.timeline, null));
  }, [id, overlay, log.version]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again per row
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ["execution", execution], exact: true });
  }, [client, execution, log.timeline.seq]);
  return null;
}
