/** Draft of a workflow: the saved definition, the changes since, and the undone changes. */
import { createStore } from "zustand/vanilla";
import type { Definition } from "@/api/views";
import { applyEffective, applyOperation, type Operation } from "./operations";

export interface Draft {
  base: Definition;
  shown: Definition;
  /** Each entry is one user action and one undo step. */
  done: Operation[][];
  undone: Operation[][];
  act: (...changes: Operation[]) => void;
  /** Like `act`, but consecutive changes of the same field form one undo step. */
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
        const { made, shown } = applyEffective(now.shown, changes);
        return made.length > 0 ? { shown, done: [...now.done, made], undone: [] } : now;
      }),
    type: (change) =>
      set((now) => {
        const last = now.done.at(-1);
        const isMore = last !== undefined && sameField(last, change);
        const before = isMore ? now.done.slice(0, -1) : now.done;
        // The field may not exist in the base, so compute the removal from the state before typing.
        const from = isMore && "remove" in change ? before.flat().reduce(applyOperation, now.base) : now.shown;
        const { made, shown } = applyEffective(from, [change]);
        if (made.length > 0) return { shown, done: [...before, made], undone: [] };
        return isMore ? { shown, done: before, undone: [] } : now;
      }),
    undo: () =>
      set((now) => {
        const last = now.done.at(-1);
        if (!last) return now;
        const done = now.done.slice(0, -1);
        return { done, undone: [...now.undone, last], shown: done.flat().reduce(applyOperation, now.base) };
      }),
    redo: () =>
      set((now) => {
        const next = now.undone.at(-1);
        if (!next) return now;
        return {
          done: [...now.done, next],
          undone: now.undone.slice(0, -1),
          shown: next.reduce(applyOperation, now.shown),
        };
      }),
    restart: (base, done = []) => set({ base, done, undone: [], shown: done.flat().reduce(applyOperation, base) }),
  }));
}

/** For users without edit rights: all edits are ignored. */
export function makeReadOnlyDraft(base: Definition): DraftStore {
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
