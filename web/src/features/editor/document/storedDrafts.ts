/** Store unsaved changes in the browser, with the revision that they are based on, so that they survive a reload. */
import { useEffect, useState } from "react";
import type { Definition } from "@/api/views";
import { browserStorage } from "@/browserStorage";
import { type DraftStore, makeDraft } from "./draft";
import { isOperation, type Operation } from "./operations";

const STORAGE_PREFIX = "pointsman.draft.";
const OLDER_PREFIX = "pointsman.older.";

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
  browserStorage.write(STORAGE_PREFIX + id, null);
}

/** Returns false if the browser storage is unavailable or full: the changes would be lost with the page. */
export function storeDraft(id: string, stored: StoredDraft): boolean {
  return browserStorage.write(STORAGE_PREFIX + id, stored.done.length === 0 ? null : JSON.stringify(stored));
}

/** Changes based on another revision; the editor offers them and never drops them on its own. */
export function olderDraft(id: string): StoredDraft | null {
  return read(OLDER_PREFIX + id);
}

export function removeOlderDraft(id: string): void {
  browserStorage.write(OLDER_PREFIX + id, null);
}

export function openDraft(id: string, native: Definition, revision: number): DraftStore {
  const store = makeDraft(native);
  const stored = read(STORAGE_PREFIX + id);
  if (stored?.revision === revision) store.getState().restart(native, stored.done);
  else if (stored) {
    browserStorage.write(OLDER_PREFIX + id, JSON.stringify(stored));
    removeDraft(id);
  }
  return store;
}

/** Whether the changes survive a reload. */
export function useStoredDraft(id: string, revision: number, store: DraftStore): boolean {
  const [isStored, setStored] = useState(() => browserStorage.lasts(STORAGE_PREFIX + id));
  useEffect(() => store.subscribe(({ done }) => setStored(storeDraft(id, { revision, done }))), [id, revision, store]);
  return isStored;
}
