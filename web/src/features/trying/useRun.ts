/** Running what is on the screen, as far as somebody wishes; asked for from wherever a node can be pointed at. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ApiError } from "@/api/http";
import { askedOf } from "../editor/operations";
import { useWork } from "../editor/work";
import type { Story } from "../execution/story";
import { begin, type Trial } from "./asking";
import { asLastTime, broughtBy, lastStory } from "./last";
import { tryoutOf } from "./tryout";

/** As far as which node; `fresh`: what leads there is performed too, and not taken from the last time. */
export type Wish = { until?: string; fresh?: boolean };

const FRESH_MS = 30_000;

export function useRun() {
  const client = useQueryClient();
  const { id, draft, show } = useWork();
  const tryout = tryoutOf(id);
  /** How it went: in the trial that is shown, else the last time. */
  const lately = async (): Promise<Story | null> => {
    const shown = tryout.getState().log?.story;
    return shown && shown.order.length > 0 ? shown : client.fetchQuery({ ...lastStory(id), staleTime: FRESH_MS });
  };
  const run = useMutation<{ executionId: string }, ApiError, Wish>({
    mutationFn: async ({ until, fresh = true }) => {
      const { pins, breakpoints } = tryout.getState();
      const present = new Set(draft.shown.nodes.map((node) => node.id));
      const given = fresh || !until ? {} : asLastTime(draft.shown, await lately(), until);
      const mine = Object.entries({ ...given, ...pins }).filter(([node]) => present.has(node) && node !== until);
      return begin(id, {
        ...askedFor(id, draft),
        pinned: Object.fromEntries(mine),
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
      tryout.getState().watch(executionId);
      void client.invalidateQueries({ queryKey: ["last", id] });
    },
  });
  return {
    run,
    /** It brings what it brought lately, without being performed; where nobody knows that, an empty object. */
    pin: async (node: string) => tryout.getState().pin(node, broughtBy(await lately(), node) ?? {}),
  };
}

/** What is on the screen, with the input that is given to it. */
export function askedFor(id: string, draft: ReturnType<typeof useWork>["draft"]): Trial {
  const { operations, text } = askedOf(draft.done);
  return { input: tryoutOf(id).getState().input, operations, ...(text === undefined ? {} : { document: text }) };
}
