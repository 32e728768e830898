/** Changes survive a reload: this browser keeps them, with the revision they were made on. */
import { useEffect, useState } from "react";
import type { Definition } from "@/api/views";
import { browserStorage } from "@/browserStorage";
import { type DraftStore, makeDraft } from "./draft";
import { isOperation, type Operation } from "./operations";

const KEPT_AS = "pointsman.draft.";
const OLDER_AS = "pointsman.older.";

export interface StoredDraft {
  revision: number;
  done: Operation[][];
}

function read(key: string): StoredDraft | null {
  try {
    const found = JSON.parse(browserStorage.read(key) ?? "null") as StoredDraft | null;
    return found?.done.every((act) => act.every(isOperation)) ? found : null;
  } catch {
    browserStorage.write(key, null);
    return null;
  }
}

export function removeDraft(id: string): void {
  browserStorage.write(KEPT_AS + id, null);
}

/** False where the changes are gone with the page: this browser keeps nothing, or has no room for them. */
export function storeDraft(id: string, kept: StoredDraft): boolean {
  return browserStorage.write(KEPT_AS + id, kept.done.length === 0 ? null : JSON.stringify(kept));
}

/** Changes that were made on another revision than the one that is edited: to be offered, never dropped unasked. */
export function olderDraft(id: string): StoredDraft | null {
  return read(OLDER_AS + id);
}

export function removeOlderDraft(id: string): void {
  browserStorage.write(OLDER_AS + id, null);
}

export function startedFrom(id: string, native: Definition, revision: number): DraftStore {
  const store = makeDraft(native);
  const kept = read(KEPT_AS + id);
  if (kept?.revision === revision) store.getState().restart(native, kept.done);
  else if (kept) {
    browserStorage.write(OLDER_AS + id, JSON.stringify(kept));
    removeDraft(id);
  }
  return store;
}

/** Whether a reload leaves them as they are. */
export function useStoredDraft(id: string, revision: number, store: DraftStore): boolean {
  const [isKept, tell] = useState(() => browserStorage.lasts(KEPT_AS + id));
  useEffect(() => store.subscribe(({ done }) => tell(storeDraft(id, { revision, done }))), [id, revision, store]);
  return isKept;
}
