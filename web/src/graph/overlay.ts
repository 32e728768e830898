/** What an execution adds to a picture: the look of each box, and how often each arrow was taken. Boxes listen by id. */
import { createContext, useContext, useSyncExternalStore } from "react";
import type { Look } from "@/components/Status";

export interface BoxOverlay {
  look: Look;
  /** As in "3/5": how many of its steps are over, where there is more than one. */
  count: string;
  round: number | null;
}

export class Overlay {
  private boxes = new Map<string, BoxOverlay>();
  private arrows = new Map<string, number>();
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

  show(boxes: Map<string, BoxOverlay>, arrows: Map<string, number>): void {
    // What looks the same stays the same object, so that only what changed is drawn again.
    for (const [id, next] of boxes) {
      const was = this.boxes.get(id);
      if (was && was.look === next.look && was.count === next.count && was.round === next.round) boxes.set(id, was);
    }
    this.boxes = boxes;
    this.arrows = new Map(arrows);
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
