import { useState } from "react";

export interface Selection {
  ids: readonly string[];
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  /** Select all; if all are selected, select none. */
  toggleAll: (ids: readonly string[]) => void;
  clear: () => void;
}

/** The selected entries of a list. Entries that are no longer listed do not count. */
export function useSelection(listed: readonly string[]): Selection {
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const ids = listed.filter((id) => chosen.has(id));
  return {
    ids,
    has: (id) => chosen.has(id),
    toggle: (id) =>
      choose((before) => new Set(before.has(id) ? [...before].filter((one) => one !== id) : [...before, id])),
    toggleAll: (all) => choose(ids.length === all.length ? new Set() : new Set(all)),
    clear: () => choose(new Set()),
  };
}
