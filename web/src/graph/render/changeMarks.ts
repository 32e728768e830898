/** Styles of added, removed and changed elements. */
import { createContext, useContext } from "react";
import type { Mark } from "@/graph/model/diff";

export const MARKS: Record<Mark, { sign: string; ink: string; soft: string; edge: string; stroke: string }> = {
  added: {
    sign: "+",
    ink: "text-done",
    soft: "bg-done-soft",
    edge: "border-done bg-done-soft",
    stroke: "var(--done)",
  },
  removed: {
    sign: "−",
    ink: "text-failed",
    soft: "bg-failed-soft",
    edge: "border-failed border-dashed bg-failed-soft opacity-80",
    stroke: "var(--failed)",
  },
  changed: {
    sign: "~",
    ink: "text-waiting",
    soft: "bg-waiting-soft",
    edge: "border-waiting bg-waiting-soft",
    stroke: "var(--waiting)",
  },
};

/** Maps `node <id>` or `edge <name>` to its change. */
export type Marks = ReadonlyMap<string, Mark>;

export const MarksContext = createContext<Marks | null>(null);

export function useMark(kind: "node" | "edge", id: string): Mark | undefined {
  return useContext(MarksContext)?.get(`${kind} ${id}`);
}
