/** Run the unsaved workflow, completely or up to a node. */
import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import type { ApiError } from "@/api/http";
import { control } from "@/api/queries";
import { type DefinitionNode, ENDED, type Json } from "@/api/views";
import type { Draft } from "@/features/editor/document/draft";
import { editRequest } from "@/features/editor/document/operations";
import { useEditor } from "@/features/editor/editorContext";
import { lastRuns, loadRun, previousResults, type Run, stepsOf } from "./lastRuns";
import { startTrial, type Trial } from "./requests";
import { sampleFor } from "./sample";
import { tryoutOf } from "./tryout";

/** `until`: the last node to run. `fresh: false` mocks the nodes before it with their previous results. */
export type RunOptions = { until?: string; fresh?: boolean };

export function useRun() {
  const client = useQueryClient();
  const { id, draft, show } = useEditor();
  const tryout = tryoutOf(id);
  const run = useMutation<{ executionId: string }, ApiError, RunOptions>({
    mutationFn: async ({ until, fresh = true }) => {
      const results = fresh || !until ? {} : previousResults(draft.shown, await recentRuns(client, id), until);
      const { breakpoints } = tryout.getState();
      const present = new Set(draft.shown.nodes.map((node) => node.id));
      return startTrial(id, {
        ...trialRequest(id, draft),
        pinned: { ...results, ...pinsOf(id, draft, until) },
        breakpoints: breakpoints.filter((node) => present.has(node)),
        ...(until ? { until: [until] } : {}),
      });
    },
    onMutate: () => {
      tryout.getState().setStartError(null);
      show("try");
    },
    onError: (why) => tryout.getState().setStartError(why),
    onSuccess: ({ executionId }) => {
      const { execution: before, log } = tryout.getState();
      tryout.getState().showExecution(executionId);
      // Cancel the replaced run: the user cannot return to it, and it does not appear in the inbox.
      if (before !== null && !(log && ENDED.has(log.timeline.status)))
        void control(before, "cancel").catch(() => undefined);
      void client.invalidateQueries({ queryKey: ["last", id] });
    },
  });
  return {
    run,
    /** Mock a node with its last result, or with a sample for the user to edit if it has none. */
    pin: async (node: DefinitionNode) => {
      const known = [...stepsOf(await recentRuns(client, id), node.id).values()].at(-1);
      tryout.getState().pin(node.id, known ?? sampleFor(node, draft.shown));
      if (known === undefined) show("try");
    },
  };
}

/** The displayed run first, then earlier ones. */
async function recentRuns(client: QueryClient, id: string): Promise<Run[]> {
  const { execution } = tryoutOf(id).getState();
  const last = await client.fetchQuery(lastRuns(id));
  return execution === null ? last : [await loadRun(execution), ...last];
}

/** Mocks of existing nodes, except for the node to run. */
export function pinsOf(id: string, draft: Draft, until?: string): Record<string, Json> {
  const present = new Set(draft.shown.nodes.map((node) => node.id));
  const { pins } = tryoutOf(id).getState();
  return Object.fromEntries(Object.entries(pins).filter(([node]) => present.has(node) && node !== until));
}

/** The unsaved workflow and its input. */
export function trialRequest(id: string, draft: Draft): Trial {
  const { operations, text } = editRequest(draft.done);
  return { input: tryoutOf(id).getState().input, operations, ...(text === undefined ? {} : { document: text }) };
}
