/** Running what is on the screen, as far as somebody wishes; asked for from wherever a node can be pointed at. */
import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import type { ApiError } from "@/api/http";
import { control } from "@/api/queries";
import { type DefinitionNode, ENDED, type Json } from "@/api/views";
import type { Draft } from "@/features/editor/document/draft";
import { askedOf } from "@/features/editor/document/operations";
import { useEditor } from "@/features/editor/editorContext";
import { asLastTime, lastRuns, type Run, runOf, stepsOf } from "./lastRuns";
import { begin, type Trial } from "./requests";
import { sampleFor } from "./sample";
import { tryoutOf } from "./tryout";

/** As far as which node; `fresh`: what leads there is performed too, and not taken from the last time. */
export type Wish = { until?: string; fresh?: boolean };

export function useRun() {
  const client = useQueryClient();
  const { id, draft, show } = useEditor();
  const tryout = tryoutOf(id);
  const run = useMutation<{ executionId: string }, ApiError, Wish>({
    mutationFn: async ({ until, fresh = true }) => {
      const given = fresh || !until ? {} : asLastTime(draft.shown, await lately(client, id), until);
      const { breakpoints } = tryout.getState();
      const present = new Set(draft.shown.nodes.map((node) => node.id));
      return begin(id, {
        ...askedFor(id, draft),
        pinned: { ...given, ...pinsOf(id, draft, until) },
        breakpoints: breakpoints.filter((node) => present.has(node)),
        ...(until ? { until: [until] } : {}),
      });
    },
    onMutate: () => {
      tryout.getState().refuse(null);
      show("try");
    },
    onError: (why) => tryout.getState().refuse(why),
    onSuccess: ({ executionId }) => {
      const { execution: before, log } = tryout.getState();
      tryout.getState().watch(executionId);
      // Nobody comes back to the one that was shown: it waits for nobody, and stands in no inbox.
      if (before !== null && !(log && ENDED.has(log.timeline.status)))
        void control(before, "cancel").catch(() => undefined);
      void client.invalidateQueries({ queryKey: ["last", id] });
    },
  });
  return {
    run,
    /** It brings what it brought lately, without being performed; where nobody knows that, what it could bring, to be
     * written down. */
    pin: async (node: DefinitionNode) => {
      const known = [...stepsOf(await lately(client, id), node.id).values()].at(-1);
      tryout.getState().pin(node.id, known ?? sampleFor(node, draft.shown));
      if (known === undefined) show("try");
    },
  };
}

/** How it went the last times: in the trial that is shown, as far as that came, and before. */
async function lately(client: QueryClient, id: string): Promise<Run[]> {
  const { execution } = tryoutOf(id).getState();
  const last = await client.fetchQuery(lastRuns(id));
  return execution === null ? last : [await runOf(execution), ...last];
}

/** What is pinned of the nodes that are there; the node that is run is performed. */
export function pinsOf(id: string, draft: Draft, until?: string): Record<string, Json> {
  const present = new Set(draft.shown.nodes.map((node) => node.id));
  const { pins } = tryoutOf(id).getState();
  return Object.fromEntries(Object.entries(pins).filter(([node]) => present.has(node) && node !== until));
}

/** What is on the screen, with the input that is given to it. */
export function askedFor(id: string, draft: Draft): Trial {
  const { operations, text } = askedOf(draft.done);
  return { input: tryoutOf(id).getState().input, operations, ...(text === undefined ? {} : { document: text }) };
}
