/** What somebody who tries a workflow has put on its boxes: values that are given, and places where it stops. */
import { createContext, useContext } from "react";

export interface PartialRunMarks {
  pinned: ReadonlySet<string>;
  breakpoints: ReadonlySet<string>;
}

export const PartialRunContext = createContext<PartialRunMarks | null>(null);

export function usePartialRunMarks(id: string): { isPinned: boolean; isStop: boolean } {
  const tried = useContext(PartialRunContext);
  return { isPinned: tried?.pinned.has(id) ?? false, isStop: tried?.breakpoints.has(id) ?? false };
}
