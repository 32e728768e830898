/**
 * Execution state on top of a picture: the status of each box, and how often each arrow was taken. Boxes subscribe by
 * id.
 */
import { createContext, useContext, useSyncExternalStore } from "react";
import type { Look } from "@/components/Status";

export interface BoxOverlay {
  look: Look;
  /** Finished and all steps as in "3/5", if there is more than one step. */
  count: string;
  round: number | null;
}

export class Overlay {
  private boxes = new Map<string, BoxOverlay>();
  private arrows = new Map<string, number>();
  private open = new Map<string, number>();
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  box(id: string): BoxOverlay | undefined {
    return this.boxes.get(id);
  }

  taken(arrow: string): number {
    return this.arrows.get(arrow) ?? 0;
  }

  /** Whether a step that this arrow led to is still running. */
  active(arrow: string): boolean {
    return (this.open.get(arrow) ?? 0) > 0;
  }

  show(boxes: Map<string, BoxOverlay>, arrows: Map<string, number>, open: Map<string, number> = new Map()): void {
    // Unchanged entries keep their object, so that only changed boxes render again.
    for (const [id, next] of boxes) {
      const was = this.boxes.get(id);
      if (was && was.look === next.look && was.count === next.count && was.round === next.round) boxes.set(id, was);
    }
    this.boxes = boxes;
    this.arrows = new Map(arrows);
    this.open = new Map(open);
    for (const listener of this.listeners) listener();
  }
}

export const OverlayContext = createContext<Overlay | null>(null);
const nothing = () => () => undefined;

export function useBoxOverlay(id: string): BoxOverlay | undefined {
  const overlay = useContext(OverlayContext);
  return useSyncExternalStore(overlay?.subscribe ?? nothing, () => overlay?.box(id));
}

export function useTaken(arrow: string): number {
  const overlay = useContext(OverlayContext);
  return useSyncExternalStore(overlay?.subscribe ?? nothing, () => overlay?.taken(arrow) ?? 0);
}

/** Which status wins if one box represents several nodes. */
const WEIGHT: readonly Look[] = ["waiting", "paused", "running", "failed", "pending", "cancelled", "done", "passed"];

export function useLooks(ids: readonly string[]): Look | null {
  const overlay = useContext(OverlayContext);
  return useSyncExternalStore(overlay?.subscribe ?? nothing, () => {
    const looks = new Set(ids.map((id) => overlay?.box(id)?.look));
    return WEIGHT.find((look) => looks.has(look)) ?? null;
  });
}

export function useActive(arrow: string): boolean {
  const overlay = useContext(OverlayContext);
  return useSyncExternalStore(overlay?.subscribe ?? nothing, () => overlay?.active(arrow) ?? false);
}
