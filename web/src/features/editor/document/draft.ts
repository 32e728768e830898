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
  /** The last change was typed into a field beside the canvas, which may draw it later than the field. */
  isTyping: boolean;
  act: (...changes: Operation[]) => void;
  /** Like `act`, but consecutive changes of the same field form one undo step. `place`: where the field is. */
  type: (change: TypedChange, place?: "canvas") => void;
  undo: () => void;
  redo: () => void;
  restart: (base: Definition, done?: Operation[][]) => void;
}

type TypedChange = Operation & { op: "change_node" | "change_edge" | "change_workflow" | "replace_text" };

export function makeDraft(base: Definition) {
  return createStore<Draft>((set) => ({
    base,
    shown: base,
    done: [],
    undone: [],
    isTyping: false,
    act: (...changes) =>
      set((now) => {
        const { made, shown } = applyEffective(now.shown, changes);
        return made.length > 0 ? { shown, done: [...now.done, made], undone: [], isTyping: false } : now;
      }),
    type: (change, place) =>
      set((now) => {
        const last = now.done.at(-1);
        const isMore = last !== undefined && sameField(last, change);
        const before = isMore ? now.done.slice(0, -1) : now.done;
        // The field may not exist in the base, so compute the removal from the state before typing.
        const from = isMore && "remove" in change ? before.flat().reduce(applyOperation, now.base) : now.shown;
        const { made, shown } = applyEffective(from, [change]);
        const isTyping = place !== "canvas";
        if (made.length > 0) return { shown, done: [...before, made], undone: [], isTyping };
        return isMore ? { shown, done: before, undone: [], isTyping } : now;
      }),
    undo: () =>
      set((now) => {
        const last = now.done.at(-1);
        if (!last) return now;
        const done = now.done.slice(0, -1);
        const shown = done.flat().reduce(applyOperation, now.base);
        return { done, undone: [...now.undone, last], shown, isTyping: false };
      }),
    redo: () =>
      set((now) => {
        const next = now.undone.at(-1);
        if (!next) return now;
        return {
          done: [...now.done, next],
          undone: now.undone.slice(0, -1),
          shown: next.reduce(applyOperation, now.shown),
          isTyping: false,
        };
      }),
    restart: (base, done = []) =>
      set({ base, done, undone: [], shown: done.flat().reduce(applyOperation, base), isTyping: false }),
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
