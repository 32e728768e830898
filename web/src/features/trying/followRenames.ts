/** Keep mocks and breakpoints in step with renamed nodes and with other windows. */
import type { DraftStore } from "@/features/editor/document/draft";
import type { Operation } from "@/features/editor/document/operations";
import { STORAGE_PREFIX, tryoutOf } from "./tryout";

/** Move the mock and the breakpoint of a renamed node to its new id, also on undo and redo. */
export function followRenames(id: string, store: DraftStore): () => void {
  return store.subscribe((now, before) => {
    const done = now.done.length > before.done.length ? (now.done.at(-1) ?? []) : [];
    const undone = now.undone.length > before.undone.length ? (now.undone.at(-1) ?? []) : [];
    const { rename } = tryoutOf(id).getState();
    for (const [from, to] of renames(done)) rename(from, to);
    for (const [from, to] of renames(undone).toReversed()) rename(to, from);
  });
}

function renames(operations: readonly Operation[]): [string, string][] {
  return operations.flatMap((one) => (one.op === "rename_node" ? [[one.node, one.to] as [string, string]] : []));
}

/** Reload mocks and breakpoints when another window of this browser changes them. */
export function followOtherWindows(id: string): () => void {
  const onStorage = (event: StorageEvent) => {
    if (event.key === STORAGE_PREFIX + id) tryoutOf(id).getState().reload();
  };
  window.addEventListener("storage", onStorage);
  return () => window.removeEventListener("storage", onStorage);
}
