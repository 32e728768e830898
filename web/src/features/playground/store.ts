/** The prompt on the page, and its versions: each run is one version, kept in this browser with the ids of its
 * executions. */
import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import { ApiError } from "@/api/http";
import { browserStorage, windowStorage } from "@/browserStorage";
import { now } from "@/clock";
import { startTrial } from "@/features/trying/requests";
import { uniqueId } from "@/uniqueId";
import { type Draft, documentFor, EMPTY, inputFor, type Row, type Target, WORKFLOW } from "./prompt";

export const DRAFT_KEY = "pointsman.playground.draft";
export const VERSIONS_KEY = "pointsman.playground.versions";
export const VERSIONS_MAX = 20;

/** One answer: its execution, or why it did not start; neither while it starts. */
export interface Cell {
  execution?: string;
  error?: { code: string; message: string; hint: string };
}

/** A prompt that was run. `cells` has a list for each input row, with a cell for each target. */
export interface Version {
  id: string;
  at: number;
  draft: Draft;
  cells: Cell[][];
}

export interface Playground {
  draft: Draft;
  /** Newest first. */
  versions: Version[];
  /** Id of the version whose answers are shown. */
  shown: string | null;
  change: (change: Partial<Draft>) => void;
  /** Show the answers of a version, and continue with its prompt. */
  restore: (id: string) => void;
  clear: () => void;
  run: () => Promise<void>;
}

function readJson<T>(text: string | null, fallback: T): T {
  try {
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

/** Put a prompt on the page that opens next in this window. */
export function writeDraft(draft: Draft): void {
  windowStorage.write(DRAFT_KEY, JSON.stringify(draft));
}

const storedVersions = () => readJson<Version[]>(browserStorage.read(VERSIONS_KEY), []);

/** Add or replace one version: another window, or a page that was left while it started a run, may have stored more. */
function storeVersion(version: Version): void {
  const stored = storedVersions();
  const next = stored.some((one) => one.id === version.id)
    ? stored.map((one) => (one.id === version.id ? version : one))
    : [version, ...stored].slice(0, VERSIONS_MAX);
  browserStorage.write(VERSIONS_KEY, JSON.stringify(next));
}

/** The state of one page. */
export function createPlayground() {
  const versions = storedVersions();
  const draft = readJson<Draft | null>(windowStorage.read(DRAFT_KEY), null);
  const store = createStore<Playground>((set, get) => ({
    draft: draft ?? versions[0]?.draft ?? EMPTY,
    versions,
    shown: draft === null ? (versions[0]?.id ?? null) : versionOf(versions, draft),
    change: (change) => set((before) => ({ draft: { ...before.draft, ...change } })),
    restore: (id) => {
      const version = get().versions.find((one) => one.id === id);
      if (version) set({ draft: version.draft, shown: id });
    },
    clear: () => set({ draft: EMPTY, shown: null }),
    run: async () => {
      const version = newVersion(get().draft);
      set((before) => ({ versions: [version, ...before.versions].slice(0, VERSIONS_MAX), shown: version.id }));
      const setCell = (rowAt: number, targetAt: number, cell: Cell) =>
        set((before) => ({ versions: before.versions.map((one) => withCell(one, version.id, rowAt, targetAt, cell)) }));
      await Promise.all(
        version.draft.rows.flatMap((row, rowAt) =>
          version.draft.targets.map(async (target, targetAt) =>
            setCell(rowAt, targetAt, await startCell(version.draft, row, target)),
          ),
        ),
      );
    },
  }));
  store.subscribe((next, before) => {
    if (next.draft !== before.draft) writeDraft(next.draft);
    for (const version of next.versions) if (!before.versions.includes(version)) storeVersion(version);
  });
  return store;
}

/** The latest version of exactly this prompt: a reload shows its answers again. */
function versionOf(versions: readonly Version[], draft: Draft): string | null {
  const text = JSON.stringify(draft);
  return versions.find((one) => JSON.stringify(one.draft) === text)?.id ?? null;
}

const newVersion = (draft: Draft): Version => ({
  id: uniqueId(),
  at: now(),
  draft,
  cells: draft.rows.map(() => draft.targets.map(() => ({}))),
});

function withCell(version: Version, id: string, rowAt: number, targetAt: number, cell: Cell): Version {
  if (version.id !== id) return version;
  const cells = version.cells.map((row, at) =>
    at === rowAt ? row.map((before, nth) => (nth === targetAt ? cell : before)) : row,
  );
  return { ...version, cells };
}

async function startCell(draft: Draft, row: Row, target: Target): Promise<Cell> {
  try {
    const started = await startTrial(WORKFLOW, {
      input: inputFor(draft, row),
      operations: [],
      document: JSON.stringify(documentFor(draft, target)),
    });
    return { execution: started.executionId };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { error: { code: error.code, message: error.message, hint: error.hint } };
  }
}

export type PlaygroundStore = ReturnType<typeof createPlayground>;

export const usePlayground = <T>(store: PlaygroundStore, pick: (now: Playground) => T): T => useStore(store, pick);
