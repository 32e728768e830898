/** What is being edited: the saved definition, the changes made since, and what of them was undone. */
import { createStore } from "zustand/vanilla";
import type { Definition } from "@/api/views";
import { applied, type Operation, withWork } from "./operations";

export interface Draft {
  base: Definition;
  shown: Definition;
  /** Each entry is one thing that a person did, and one undo. */
  done: Operation[][];
  undone: Operation[][];
  act: (...changes: Operation[]) => void;
  /** As `act`, but another change of the same field is part of the last one. */
  type: (change: Operation & { op: "change_node" | "change_edge" | "change_workflow" | "replace_text" }) => void;
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
      set((now) => {
        const { made, shown } = withWork(now.shown, changes);
        return made.length > 0 ? { shown, done: [...now.done, made], undone: [] } : now;
      }),
    type: (change) =>
      set((now) => {
        const last = now.done.at(-1);
        const isMore = last !== undefined && sameField(last, change);
        const before = isMore ? now.done.slice(0, -1) : now.done;
        // A field that is emptied again may never have been there.
        const from = isMore && "remove" in change ? before.flat().reduce(applied, now.base) : now.shown;
        const { made, shown } = withWork(from, [change]);
        if (made.length > 0) return { shown, done: [...before, made], undone: [] };
        return isMore ? { shown, done: before, undone: [] } : now;
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

/** For who may only look: whatever is asked for, it stays as it is. */
export function makeLook(base: Definition): DraftStore {
  const store = makeDraft(base);
  store.setState({ act: () => undefined, type: () => undefined });
  return store;
}

export type DraftStore = ReturnType<typeof makeDraft>;

function sameField(last: readonly Operation[], change: Operation): boolean {
  const [one] = last;
  if (last.length !== 1 || !one || one.op !== change.op) return false;
  return fieldOf(one) === fieldOf(change) && fieldOf(one) !== "";
}

function fieldOf(change: Operation): string {
  if (change.op === "replace_text") return change.op;
  if (change.op !== "change_node" && change.op !== "change_edge" && change.op !== "change_workflow") return "";
  const about = change.op === "change_node" ? change.node : change.op === "change_edge" ? change.edge : "";
  const set = Object.keys(change.set ?? {});
  return [about, ...(set.length > 0 ? set : (change.remove ?? []))].join("\n");
}
