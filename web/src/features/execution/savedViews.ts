/** Filters that the user saved under a name, in this browser. */
import { useState } from "react";
import { browserStorage } from "@/browserStorage";
import type { ExecutionSearch } from "./filters";

const KEY = "pointsman.executions.views";

export type SavedViews = Readonly<Record<string, ExecutionSearch>>;

export function readViews(stored: string | null): SavedViews {
  try {
    const read: unknown = JSON.parse(stored ?? "{}");
    return read !== null && typeof read === "object" && !Array.isArray(read) ? (read as SavedViews) : {};
  } catch {
    return {};
  }
}

export function useSavedViews() {
  const [views, set] = useState(() => readViews(browserStorage.read(KEY)));
  const write = (next: SavedViews) => {
    set(next);
    browserStorage.write(KEY, JSON.stringify(next));
  };
  return {
    views,
    save: (name: string, search: ExecutionSearch) => write({ ...views, [name]: search }),
    remove: (name: string) => write(Object.fromEntries(Object.entries(views).filter(([one]) => one !== name))),
  };
}
