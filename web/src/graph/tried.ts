/** What somebody who tries a workflow has put on its boxes: values that are given, and places where it stops. */
import { createContext, useContext } from "react";

export interface Tried {
  pinned: ReadonlySet<string>;
  breakpoints: ReadonlySet<string>;
}

export const TriedContext = createContext<Tried | null>(null);

export function useTried(id: string): { isPinned: boolean; isStop: boolean } {
  const tried = useContext(TriedContext);
  return { isPinned: tried?.pinned.has(id) ?? false, isStop: tried?.breakpoints.has(id) ?? false };
}
