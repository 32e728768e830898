/** Changes survive a reload: this browser keeps them, with the revision they were made on. */
import { useEffect, useState } from "react";
import type { Definition } from "@/api/views";
import { shelf } from "@/shelf";
import { type DraftStore, makeDraft } from "./draft";
import { isOperation, type Operation } from "./operations";

const KEPT_AS = "pointsman.draft.";
const OLDER_AS = "pointsman.older.";

export interface Kept {
  revision: number;
  done: Operation[][];
}

function read(key: string): Kept | null {
  try {
    const found = JSON.parse(shelf.read(key) ?? "null") as Kept | null;
    return found?.done.every((act) => act.every(isOperation)) ? found : null;
  } catch {
    shelf.write(key, null);
    return null;
  }
}

export function forget(id: string): void {
  shelf.write(KEPT_AS + id, null);
}

/** False where the changes are gone with the page: this browser keeps nothing, or has no room for them. */
export function keep(id: string, kept: Kept): boolean {
  return shelf.write(KEPT_AS + id, kept.done.length === 0 ? null : JSON.stringify(kept));
}

/** Changes that were made on another revision than the one that is edited: to be offered, never dropped unasked. */
export function olderOf(id: string): Kept | null {
  return read(OLDER_AS + id);
}

export function forgetOlder(id: string): void {
  shelf.write(OLDER_AS + id, null);
}

export function startedFrom(id: string, native: Definition, revision: number): DraftStore {
  const store = makeDraft(native);
  const kept = read(KEPT_AS + id);
  if (kept?.revision === revision) store.getState().restart(native, kept.done);
  else if (kept) {
    shelf.write(OLDER_AS + id, JSON.stringify(kept));
    forget(id);
  }
  return store;
}

/** Whether a reload leaves them as they are. */
export function useKept(id: string, revision: number, store: DraftStore): boolean {
  const [isKept, tell] = useState(() => shelf.lasts(KEPT_AS + id));
  useEffect(() => store.subscribe(({ done }) => tell(keep(id, { revision, done }))), [id, revision, store]);
  return isKept;
}
