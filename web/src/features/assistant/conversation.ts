/** The conversation with the assistant about one workflow. It is stored for this window and survives a reload. */
import { createStore } from "zustand/vanilla";
import { ApiError, type Problem } from "@/api/http";
import type { Definition } from "@/api/views";
import { windowStorage } from "@/browserStorage";
import { editRequest, type Operation } from "@/features/editor/document/operations";
import { uniqueId } from "@/uniqueId";
import { type Round, streamDesign } from "./rounds";

/** The state of an exchange. */
export type Outcome = "asked" | "proposed" | "nothing" | "accepted" | "refused" | "failed" | "stopped";

export interface Proposal {
  /** The definition on the screen when the proposal was requested. */
  before: Definition;
  changes: Operation[];
  /** The problems that the proposal would add, and those that it would fix. */
  brings: Problem[];
  mends: Problem[];
}

export interface Exchange {
  id: string;
  words: string;
  outcome: Outcome;
  rounds: Round[];
  proposal: Proposal | null;
  /** The accepted part, if only a part was accepted. */
  part?: Part;
  why: { status: number; detail: string; code: string; hint: string } | null;
}

/** How many of all parts were accepted, and their operations. */
export interface Part {
  taken: number;
  all: number;
  operations: Operation[];
}

export interface Screen {
  id: string;
  shown: Definition;
  /** Unsaved operations on the screen. */
  done: readonly Operation[];
  /** The saved revision below these operations. */
  revision: number;
}

interface Answer {
  changes: Operation[];
  new: Problem[];
  gone: Problem[];
  rounds: Round[];
}

export interface Conversation {
  exchanges: readonly Exchange[];
  send: (words: string, screen: Screen) => Promise<void>;
  stop: () => void;
  recordOutcome: (id: string, outcome: "accepted" | "refused", part?: Part) => void;
  fail: (id: string, why: ApiError) => void;
  clear: () => void;
}

const STORAGE_PREFIX = "pointsman.assistant.";
const EARLIER_MAX = 20;

export function isBusy(exchanges: readonly Exchange[]): boolean {
  return exchanges.at(-1)?.outcome === "asked";
}

/** The earlier exchanges to send as context: only those that a model answered. For a partly accepted proposal, the
 * accepted part is sent as the answer. */
export function earlierOf(exchanges: readonly Exchange[]) {
  return exchanges
    .filter((one) => one.rounds.length > 0)
    .slice(-EARLIER_MAX)
    .map((one) => ({
      words: one.words,
      answer: one.part ? JSON.stringify({ operations: one.part.operations }) : (one.rounds.at(-1)?.answer ?? ""),
      accepted: one.outcome === "accepted" ? true : one.outcome === "refused" ? false : null,
    }));
}

function makeConversation(workflow: string) {
  let stop = new AbortController();
  return createStore<Conversation>((set, get) => {
    const change = (id: string, to: (one: Exchange) => Partial<Exchange>) => {
      set(({ exchanges }) => ({
        exchanges: exchanges.map((one) => (one.id === id ? { ...one, ...to(one) } : one)),
      }));
      storeExchanges(workflow, get().exchanges);
    };
    return {
      exchanges: storedExchanges(workflow),
      send: async (words, screen) => {
        if (isBusy(get().exchanges)) return;
        // An open proposal counts as refused: the next message refers to the definition on the screen.
        const before = get().exchanges.map((one) =>
          one.outcome === "proposed" ? { ...one, outcome: "refused" as const } : one,
        );
        const id = uniqueId();
        const fresh: Exchange = { id, words, outcome: "asked", rounds: [], proposal: null, why: null };
        set({ exchanges: [...before, fresh] });
        storeExchanges(workflow, get().exchanges);
        stop = new AbortController();
        const { signal } = stop;
        try {
          const answer = await streamDesign<Answer>(
            `/api/workflows/${encodeURIComponent(screen.id)}/edit`,
            { words, ...editRequest([screen.done]), earlier: earlierOf(before) },
            {
              signal,
              onRound: (round) => change(id, (one) => ({ rounds: [...one.rounds, round] })),
              headers: { "if-match": `"${screen.revision}-"` },
            },
          );
          const proposal = { before: screen.shown, changes: answer.changes, brings: answer.new, mends: answer.gone };
          change(id, () => ({ outcome: answer.changes.length > 0 ? "proposed" : "nothing", proposal }));
        } catch (why) {
          change(id, () =>
            signal.aborted ? { outcome: "stopped" } : { outcome: "failed", why: errorFields(why as ApiError) },
          );
        }
      },
      stop: () => stop.abort(),
      recordOutcome: (id, outcome, part) => change(id, () => ({ outcome, ...(part ? { part } : {}) })),
      fail: (id, why) => change(id, () => ({ why: errorFields(why) })),
      clear: () => {
        stop.abort();
        set({ exchanges: [] });
        storeExchanges(workflow, []);
      },
    };
  });
}

export type ConversationStore = ReturnType<typeof makeConversation>;

const open = new Map<string, ConversationStore>();

/** One conversation per workflow, shared by all parts of the editor. */
export function conversationAbout(workflow: string): ConversationStore {
  const found = open.get(workflow) ?? makeConversation(workflow);
  open.set(workflow, found);
  return found;
}

/** Start the conversation with the messages that the workflow was designed from. */
export function remember(workflow: string, messages: readonly Pick<Exchange, "words" | "rounds">[]): void {
  const exchanges = messages.map((one) => ({
    ...one,
    id: uniqueId(),
    outcome: "accepted" as const,
    proposal: null,
    why: null,
  }));
  open.delete(workflow);
  storeExchanges(workflow, exchanges);
}

function errorFields(why: ApiError) {
  return why instanceof ApiError
    ? { status: why.status, detail: why.message, code: why.code, hint: why.hint }
    : { status: 500, detail: String(why), code: "", hint: "" };
}

function storeExchanges(workflow: string, exchanges: readonly Exchange[]): void {
  windowStorage.write(STORAGE_PREFIX + workflow, exchanges.length === 0 ? null : JSON.stringify(exchanges));
}

function storedExchanges(workflow: string): Exchange[] {
  try {
    const found = JSON.parse(windowStorage.read(STORAGE_PREFIX + workflow) ?? "[]") as Exchange[];
    return found.map((one) => (one.outcome === "asked" ? { ...one, outcome: "stopped" } : one));
  } catch {
    return [];
  }
}
