/** The server's check of the draft: its problems, and the text that would be saved. */
import { useEffect, useState } from "react";
import { type ApiError, apiRequest, type Problem } from "@/api/http";
import type { DefinitionGraph } from "@/api/views";
import type { Draft } from "./draft";
import { editRequest, type Operation } from "./operations";

const DEBOUNCE_MS = 400;

/** Response to an edit request: the result of a dry run, or of saving. */
export interface EditResponse {
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
  /** Regions of the draft; absent: use those of the saved revision. */
  graph?: DefinitionGraph;
  /** The changes that were checked. */
  of?: readonly Operation[][];
  error?: ApiError;
}

/** Check the draft after a pause in editing, but not during a save: the server would apply the changes twice. */
export function useChecked(id: string, draft: Draft, before: Problem[], isSaving: boolean): Checked {
  const { done, shown } = draft;
  const [checked, setChecked] = useState<Checked>({ problems: before });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shown` changes only with `done`
  useEffect(() => {
    if (done.length === 0) {
      setChecked({ problems: before });
      return;
    }
    if (isSaving) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const path = `/api/workflows/${encodeURIComponent(id)}/edit`;
        const edited = await apiRequest<EditResponse>(path, {
          body: { ...editRequest(done), graph: true },
          signal: stop.signal,
        });
        const { problems, text, graph } = edited;
        setChecked((now) => {
          const latest = graph ? { ...graph, known: shown.nodes.map((node) => node.id) } : now.graph;
          return { problems, text, of: done, ...(latest ? { graph: latest } : {}) };
        });
      } catch (why) {
        if (stop.signal.aborted) return;
        const error = why as ApiError;
        // Problems of the document are shown at their fields; any other error is a failure of the request.
        setChecked((now) =>
          error.problems.length > 0 ? { ...now, problems: error.problems, of: done } : { ...now, error },
        );
      }
    }, DEBOUNCE_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, done, before, isSaving]);
  return checked;
}
