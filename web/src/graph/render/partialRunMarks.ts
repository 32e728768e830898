/** Marks of a partial run on the boxes: mocked values and breakpoints. */
import { createContext, useContext } from "react";

export interface PartialRunMarks {
  pinned: ReadonlySet<string>;
  breakpoints: ReadonlySet<string>;
}

export const PartialRunContext = createContext<PartialRunMarks | null>(null);

export function usePartialRunMarks(id: string): { isPinned: boolean; hasBreakpoint: boolean } {
  const tried = useContext(PartialRunContext);
  return { isPinned: tried?.pinned.has(id) ?? false, hasBreakpoint: tried?.breakpoints.has(id) ?? false };
}
