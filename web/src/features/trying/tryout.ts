/** Partial-run state of a workflow in this browser: input, mocks, breakpoints, and the displayed run. */
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import type { ApiError } from "@/api/http";
import type { Json } from "@/api/views";
import { browserStorage, windowStorage } from "@/browserStorage";
import type { LogView } from "../execution/log";

export const STORAGE_PREFIX = "pointsman.tryout.";
/** Kept per window, so that a reload does not lose a run that waits for its author. */
const EXECUTION_PREFIX = "pointsman.trial.";

interface StoredTryout {
  input: Json;
  pins: Record<string, Json>;
  breakpoints: string[];
}

export interface Tryout extends StoredTryout {
  /** Id of the execution whose progress the canvas shows. */
  execution: string | null;
  log: (LogView & { refresh: () => void }) | null;
  /** Why the last partial run did not start. */
  startError: ApiError | null;
  setStartError: (why: ApiError | null) => void;
  setInput: (input: Json) => void;
  pin: (node: string, value: Json) => void;
  unpin: (node: string) => void;
  setBreakpoint: (node: string, stops: boolean) => void;
  /** Move the mock and the breakpoint of a renamed node. */
  rename: (from: string, to: string) => void;
  /** Read the stored state again after another window changed it. */
  reload: () => void;
  showExecution: (execution: string | null) => void;
  setLog: (log: Tryout["log"]) => void;
}

function readStored(id: string): StoredTryout {
  const empty = { input: {}, pins: {}, breakpoints: [] };
  try {
    return { ...empty, ...(JSON.parse(browserStorage.read(STORAGE_PREFIX + id) ?? "{}") as Partial<StoredTryout>) };
  } catch {
    browserStorage.write(STORAGE_PREFIX + id, null);
    return empty;
  }
}

function createTryout(id: string) {
  const store = createStore<Tryout>((set) => ({
    ...readStored(id),
    execution: windowStorage.read(EXECUTION_PREFIX + id),
    log: null,
    startError: null,
    setStartError: (refused) => set({ startError: refused }),
    setInput: (input) => set({ input, startError: null }),
    pin: (node, value) => set((now) => ({ pins: { ...now.pins, [node]: value } })),
    unpin: (node) =>
      set((now) => ({ pins: Object.fromEntries(Object.entries(now.pins).filter(([one]) => one !== node)) })),
    setBreakpoint: (node, stops) =>
      set((now) => ({ breakpoints: [...now.breakpoints.filter((one) => one !== node), ...(stops ? [node] : [])] })),
    rename: (from, to) =>
      set((now) => ({
        pins: Object.fromEntries(Object.entries(now.pins).map(([one, value]) => [one === from ? to : one, value])),
        breakpoints: now.breakpoints.map((one) => (one === from ? to : one)),
      })),
    reload: () => set(readStored(id)),
    showExecution: (execution) => {
      windowStorage.write(EXECUTION_PREFIX + id, execution);
      set({ execution, log: null });
    },
    setLog: (log) => set({ log }),
  }));
  store.subscribe(({ input, pins, breakpoints }, before) => {
    if (input === before.input && pins === before.pins && breakpoints === before.breakpoints) return;
    browserStorage.write(STORAGE_PREFIX + id, JSON.stringify({ input, pins, breakpoints }));
  });
  return store;
}

const stores = new Map<string, ReturnType<typeof createTryout>>();

export function tryoutOf(id: string) {
  const known = stores.get(id) ?? createTryout(id);
  stores.set(id, known);
  return known;
}

export function useTryout<T>(id: string, pick: (now: Tryout) => T): T {
  return useStore(tryoutOf(id), pick);
}
