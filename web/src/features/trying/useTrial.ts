/** The verbs of trying, and what is known of the last time, for the panel that shows it. */
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ApiError } from "@/api/http";
import type { Json } from "@/api/views";
import { useEditor } from "@/features/editor/editorContext";
import { lastRuns, stepsOf } from "./lastRuns";
import { type Estimated, estimate } from "./requests";
import { tryoutOf, useTryout } from "./tryout";
import { askedFor, pinsOf, useRun } from "./useRun";

/** What it would cost, and of what. */
export interface TrialReport {
  found: Estimated;
  of: readonly unknown[];
}

export function useTrial() {
  const { id, draft } = useEditor();
  const { run, pin } = useRun();
  const story = useTryout(id, (now) => now.log?.timeline);
  const last = useQuery(lastRuns(id));
  const shown = story ? [{ story, definition: draft.shown }] : [];
  const asked = () => {
    const { input, pins } = tryoutOf(id).getState();
    return [draft.shown, input, pins];
  };
  const cost = useMutation<TrialReport, ApiError>({
    mutationFn: async () => {
      const of = asked();
      return { found: await estimate(id, { ...askedFor(id, draft), pinned: pinsOf(id, draft) }), of };
    },
    onMutate: () => tryoutOf(id).getState().refuse(null),
  });
  return {
    run,
    pin,
    cost,
    /** Whether an estimate is of what is on the screen now. */
    isOfNow: (told: TrialReport) => asked().every((one, nth) => one === told.of[nth]),
    /** What the steps of a node brought, now or last time. */
    brought: (node: string): Json[] => [...stepsOf([...shown, ...(last.data ?? [])], node).values()],
  };
}

export type TrialVerbs = ReturnType<typeof useTrial>;
