/** Which regions of a workflow are folded: stored in the browser and shared by all pictures of the workflow. */
import { createContext, useCallback, useContext, useMemo, useSyncExternalStore } from "react";
import { browserStorage } from "@/browserStorage";

const STORAGE_PREFIX = "pointsman.folded.";
const listeners = new Set<() => void>();
/** Cache, because the browser storage is read only once per workflow. */
const cache = new Map<string, string>();

function read(workflow: string): string {
  let kept = cache.get(workflow);
  if (kept === undefined) {
    kept = browserStorage.read(STORAGE_PREFIX + workflow) ?? "[]";
    cache.set(workflow, kept);
  }
  return kept;
}

function write(workflow: string, kept: string): void {
  cache.set(workflow, kept);
  browserStorage.write(STORAGE_PREFIX + workflow, kept === "[]" ? null : kept);
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function idsIn(kept: string): string[] {
  try {
    const value: unknown = JSON.parse(kept);
    return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export interface Folding {
  closed: ReadonlySet<string>;
  toggle: (group: string) => void;
}

export function useFoldingOf(workflow: string): Folding {
  const kept = useSyncExternalStore(subscribe, () => read(workflow));
  const closed = useMemo(() => new Set(idsIn(kept)), [kept]);
  const toggle = useCallback(
    (group: string) => {
      const next = new Set(idsIn(read(workflow)));
      if (!next.delete(group)) next.add(group);
      write(workflow, JSON.stringify([...next].sort()));
    },
    [workflow],
  );
  return useMemo(() => ({ closed, toggle }), [closed, toggle]);
}

export const FoldingContext = createContext<Folding>({ closed: new Set(), toggle: () => undefined });

export const useFolding = () => useContext(FoldingContext);
