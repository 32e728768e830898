/** What the server says of the draft: its problems, and the text that would be saved. */
import { useEffect, useState } from "react";
import { type ApiError, apiRequest, type Problem } from "@/api/http";
import type { DefinitionGraph } from "@/api/views";
import type { Draft } from "./draft";
import { askedOf, type Operation } from "./operations";

const RESTS_MS = 400;

/** What the server answers to changes: as it would be with them, or as it is once they are saved. */
export interface Edited {
  revision: number;
  document: unknown;
  text: string;
  problems: Problem[];
  losses: Problem[];
  graph?: DefinitionGraph | null;
}

export interface Checked {
  problems: Problem[];
  text?: string;
  /** The regions of the draft; absent: those of the saved revision are the latest. */
  graph?: DefinitionGraph;
  /** The changes that it is told of. */
  of?: readonly Operation[][];
  error?: ApiError;
}

/** Asked when the changes rest for a moment; not while they are saved, or they would be made upon themselves. */
export function useChecked(id: string, draft: Draft, before: Problem[], isSaving: boolean): Checked {
  const { done, shown } = draft;
  const [told, setTold] = useState<Checked>({ problems: before });
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is shown changes with what was done
  useEffect(() => {
    if (done.length === 0) {
      setTold({ problems: before });
      return;
    }
    if (isSaving) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const path = `/api/workflows/${encodeURIComponent(id)}/edit`;
        const edited = await apiRequest<Edited>(path, { body: { ...askedOf(done), graph: true }, signal: stop.signal });
        const { problems, text, graph } = edited;
        setTold((now) => {
          const latest = graph ? { ...graph, known: shown.nodes.map((node) => node.id) } : now.graph;
          return { problems, text, of: done, ...(latest ? { graph: latest } : {}) };
        });
      } catch (why) {
        if (stop.signal.aborted) return;
        const error = why as ApiError;
        // What is wrong with the document is said of its places; anything else is a failure.
        setTold((now) =>
          error.problems.length > 0 ? { ...now, problems: error.problems, of: done } : { ...now, error },
        );
      }
    }, RESTS_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, done, before, isSaving]);
  return told;
}
