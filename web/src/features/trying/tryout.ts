/** How a workflow is tried in this browser: its input, what is pinned, where it stops, and the trial that is shown. */
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import type { ApiError } from "@/api/http";
import type { Json } from "@/api/views";
import { browserStorage, windowStorage } from "@/browserStorage";
import type { LogView } from "../execution/log";

export const KEPT_AS = "pointsman.tryout.";
/** The trial that this window shows: a reload loses none that stands still and waits for its author. */
const SHOWN_AS = "pointsman.trial.";

interface Kept {
  input: Json;
  pins: Record<string, Json>;
  breakpoints: string[];
}

export interface Tryout extends Kept {
  /** The trial whose course the canvas shows. */
  execution: string | null;
  log: (LogView & { refresh: () => void }) | null;
  /** Why the last trial did not begin. */
  refused: ApiError | null;
  refuse: (why: ApiError | null) => void;
  give: (input: Json) => void;
  pin: (node: string, value: Json) => void;
  unpin: (node: string) => void;
  stopAt: (node: string, stops: boolean) => void;
  /** What was put on a node goes with it. */
  rename: (from: string, to: string) => void;
  /** Another window changed what is kept. */
  reread: () => void;
  watch: (execution: string | null) => void;
  hear: (log: Tryout["log"]) => void;
}

function kept(id: string): Kept {
  const empty = { input: {}, pins: {}, breakpoints: [] };
  try {
    return { ...empty, ...(JSON.parse(browserStorage.read(KEPT_AS + id) ?? "{}") as Partial<Kept>) };
  } catch {
    browserStorage.write(KEPT_AS + id, null);
    return empty;
  }
}

function made(id: string) {
  const store = createStore<Tryout>((set) => ({
    ...kept(id),
    execution: windowStorage.read(SHOWN_AS + id),
    log: null,
    refused: null,
    refuse: (refused) => set({ refused }),
    give: (input) => set({ input, refused: null }),
    pin: (node, value) => set((now) => ({ pins: { ...now.pins, [node]: value } })),
    unpin: (node) =>
      set((now) => ({ pins: Object.fromEntries(Object.entries(now.pins).filter(([one]) => one !== node)) })),
    stopAt: (node, stops) =>
      set((now) => ({ breakpoints: [...now.breakpoints.filter((one) => one !== node), ...(stops ? [node] : [])] })),
    rename: (from, to) =>
      set((now) => ({
        pins: Object.fromEntries(Object.entries(now.pins).map(([one, value]) => [one === from ? to : one, value])),
        breakpoints: now.breakpoints.map((one) => (one === from ? to : one)),
      })),
    reread: () => set(kept(id)),
    watch: (execution) => {
      windowStorage.write(SHOWN_AS + id, execution);
      set({ execution, log: null });
    },
    hear: (log) => set({ log }),
  }));
  store.subscribe(({ input, pins, breakpoints }, before) => {
    if (input === before.input && pins === before.pins && breakpoints === before.breakpoints) return;
    browserStorage.write(KEPT_AS + id, JSON.stringify({ input, pins, breakpoints }));
  });
  return store;
}

const stores = new Map<string, ReturnType<typeof made>>();

export function tryoutOf(id: string) {
  const known = stores.get(id) ?? made(id);
  stores.set(id, known);
  return known;
}

export function useTryout<T>(id: string, pick: (now: Tryout) => T): T {
  return useStore(tryoutOf(id), pick);
}
