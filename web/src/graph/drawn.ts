/** What an editor adds to a picture: the arrow under the pointer, and what may not be connected while one connects. */
import { createContext, useContext, useSyncExternalStore } from "react";

export class Drawn {
  /** Asked for by the + of an arrow. */
  insert: (arrow: string) => void = () => undefined;
  private hovered: string | null = null;
  private refusals: ReadonlyMap<string, string> | null = null;
  private readonly listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  hover(arrow: string | null): void {
    if (this.hovered === arrow) return;
    this.hovered = arrow;
    this.tell();
  }

  isHovered(arrow: string): boolean {
    return this.hovered === arrow;
  }

  /** While somebody connects: why a box may not be the other end. Null: nobody does. */
  refuse(refusals: ReadonlyMap<string, string> | null): void {
    this.refusals = refusals;
    this.tell();
  }

  refusal(box: string): string | undefined {
    return this.refusals?.get(box);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

export const DrawnContext = createContext<Drawn | null>(null);
const nothing = () => () => undefined;

export function useHovered(arrow: string): boolean {
  const drawn = useContext(DrawnContext);
  return useSyncExternalStore(drawn?.subscribe ?? nothing, () => drawn?.isHovered(arrow) ?? false);
}

export function useRefusal(box: string): string | undefined {
  const drawn = useContext(DrawnContext);
  return useSyncExternalStore(drawn?.subscribe ?? nothing, () => drawn?.refusal(box));
}
