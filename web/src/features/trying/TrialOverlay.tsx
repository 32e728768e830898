/** Overlay of the editor canvas: mocks, breakpoints, and the progress of the displayed run. */
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo } from "react";
import type { DraftStore } from "@/features/editor/document/draft";
import { Overlay, OverlayContext } from "@/graph/render/overlay";
import { PartialRunContext } from "@/graph/render/partialRunMarks";
import { overlayOf } from "../execution/focus";
import { useExecutionLog } from "../execution/log";
import { followOtherWindows, followRenames } from "./followRenames";
import { tryoutOf, useTryout } from "./tryout";

export function TrialOverlay(props: { id: string; store: DraftStore; children: ReactNode }) {
  const { id, store, children } = props;
  const pins = useTryout(id, (now) => now.pins);
  const breakpoints = useTryout(id, (now) => now.breakpoints);
  const execution = useTryout(id, (now) => now.execution);
  const overlay = useMemo(() => new Overlay(), []);
  const marks = useMemo(
    () => ({ pinned: new Set(Object.keys(pins)), breakpoints: new Set(breakpoints) }),
    [pins, breakpoints],
  );
  useEffect(() => followRenames(id, store), [id, store]);
  useEffect(() => followOtherWindows(id), [id]);
  useEffect(() => {
    if (execution === null) overlay.show(new Map(), new Map());
  }, [overlay, execution]);
  return (
    <PartialRunContext.Provider value={marks}>
      <OverlayContext.Provider value={overlay}>
        {children}
        {execution === null ? null : (
          <ExecutionFollower key={execution} id={id} execution={execution} overlay={overlay} />
        )}
      </OverlayContext.Provider>
    </PartialRunContext.Provider>
  );
}

function ExecutionFollower({ id, execution, overlay }: { id: string; execution: string; overlay: Overlay }) {
  const client = useQueryClient();
  const log = useExecutionLog(execution);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the timeline is one object that grows; `version` marks its changes
  useEffect(() => {
    tryoutOf(id).getState().setLog(log);
    overlay.show(...overlayOf(log.timeline, null));
  }, [id, overlay, log.version]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: refetch for each new event
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ["execution", execution], exact: true });
  }, [client, execution, log.timeline.seq]);
  return null;
}
