/** What is being edited: the saved definition, the changes made since, and what of them was undone. */
import { createStore } from "zustand/vanilla";
import type { Definition } from "@/api/views";
import { applied, type Operation } from "./operations";

export interface Draft {
  base: Definition;
  shown: Definition;
  /** Each entry is one thing that a person did, and one undo. */
  done: Operation[][];
  undone: Operation[][];
  act: (...changes: Operation[]) => void;
  /** As `act`, but another change of the same field is part of the last one. */
  type: (change: Operation & { op: "change_node" | "change_edge" | "change_workflow" }) => void;
  undo: () => void;
  redo: () => void;
  restart: (base: Definition, done?: Operation[][]) => void;
}

export function makeDraft(base: Definition) {
  return createStore<Draft>((set) => ({
    base,
    shown: base,
    done: [],
    undone: [],
    act: (...changes) =>
      set((now) => ({ shown: changes.reduce(applied, now.shown), done: [...now.done, changes], undone: [] })),
    type: (change) =>
      set((now) => {
        const last = now.done.at(-1);
        const before = last && sameField(last, change) ? now.done.slice(0, -1) : now.done;
        return { shown: applied(now.shown, change), done: [...before, [change]], undone: [] };
      }),
    undo: () =>
      set((now) => {
        const last = now.done.at(-1);
        if (!last) return now;
        const done = now.done.slice(0, -1);
        return { done, undone: [...now.undone, last], shown: done.flat().reduce(applied, now.base) };
      }),
    redo: () =>
      set((now) => {
        const next = now.undone.at(-1);
        if (!next) return now;
        return {
          done: [...now.done, next],
          undone: now.undone.slice(0, -1),
          shown: next.reduce(applied, now.shown),
        };
      }),
    restart: (base, done = []) => set({ base, done, undone: [], shown: done.flat().reduce(applied, base) }),
  }));
}

export type DraftStore = ReturnType<typeof makeDraft>;

function sameField(last: readonly Operation[], change: Operation): boolean {
  const [one] = last;
  if (last.length !== 1 || !one || one.op !== change.op) return false;
  return fieldOf(one) === fieldOf(change) && fieldOf(one) !== "";
}

function fieldOf(change: Operation): string {
  if (change.op !== "change_node" && change.op !== "change_edge" && change.op !== "change_workflow") return "";
  const about = change.op === "change_node" ? change.node : change.op === "change_edge" ? change.edge : "";
  return [about, ...Object.keys(change.set ?? {}), ...(change.remove ?? [])].join("\n");
}
