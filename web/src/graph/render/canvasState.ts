/** Interaction state of the editor canvas: the hovered arrow, and the boxes at which a new connection cannot end. */
import { createContext, useContext, useSyncExternalStore } from "react";

export class CanvasState {
  private hovered: string | null = null;
  private refusals: ReadonlyMap<string, string> | null = null;
  private readonly listeners = new Set<() => void>();

  /** `insert` is called by the + button of an arrow. */
  constructor(readonly insert: (arrow: string) => void) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  hover(arrow: string | null): void {
    if (this.hovered === arrow) return;
    this.hovered = arrow;
    this.notify();
  }

  isHovered(arrow: string): boolean {
    return this.hovered === arrow;
  }

  /**
   * While the user draws a connection: the reason why each box cannot be its other end. Null: no connection is being
   * drawn.
   */
  refuse(refusals: ReadonlyMap<string, string> | null): void {
    this.refusals = refusals;
    this.notify();
  }

  refusal(box: string): string | undefined {
    return this.refusals?.get(box);
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}

export const CanvasStateContext = createContext<CanvasState | null>(null);
const nothing = () => () => undefined;

export function useHovered(arrow: string): boolean {
  const drawn = useContext(CanvasStateContext);
  return useSyncExternalStore(drawn?.subscribe ?? nothing, () => drawn?.isHovered(arrow) ?? false);
}

export function useRefusal(box: string): string | undefined {
  const drawn = useContext(CanvasStateContext);
  return useSyncExternalStore(drawn?.subscribe ?? nothing, () => drawn?.refusal(box));
}
