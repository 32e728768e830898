/** Pins and breakpoints stay with what they were put on: under another id, and in every window. */
import type { DraftStore } from "@/features/editor/document/draft";
import type { Operation } from "@/features/editor/document/operations";
import { KEPT_AS, tryoutOf } from "./tryout";

/** A node that gets another id takes along what was put on it, also when that is undone or done again. */
export function followRenames(id: string, store: DraftStore): () => void {
  return store.subscribe((now, before) => {
    const done = now.done.length > before.done.length ? (now.done.at(-1) ?? []) : [];
    const undone = now.undone.length > before.undone.length ? (now.undone.at(-1) ?? []) : [];
    const { rename } = tryoutOf(id).getState();
    for (const [from, to] of renames(done)) rename(from, to);
    for (const [from, to] of renames(undone).toReversed()) rename(to, from);
  });
}

function renames(deed: readonly Operation[]): [string, string][] {
  return deed.flatMap((one) => (one.op === "rename_node" ? [[one.node, one.to] as [string, string]] : []));
}

/** What another window of this browser places or gives stands here too. */
export function followOtherWindows(id: string): () => void {
  const hear = (event: StorageEvent) => {
    if (event.key === KEPT_AS + id) tryoutOf(id).getState().reread();
  };
  window.addEventListener("storage", hear);
  return () => window.removeEventListener("storage", hear);
}
