/** Actions of the try panel and the results of previous runs. */
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ApiError } from "@/api/http";
import type { Json } from "@/api/views";
import { useEditor } from "@/features/editor/editorContext";
import { lastRuns, stepsOf } from "./lastRuns";
import { type DryRun, estimateTrial } from "./requests";
import { tryoutOf, useTryout } from "./tryout";
import { pinsOf, trialRequest, useRun } from "./useRun";

/** A dry run, and the inputs that it was computed from. */
export interface TrialReport {
  found: DryRun;
  of: readonly unknown[];
}

export function useTrial() {
  const { id, draft } = useEditor();
  const { run, pin } = useRun();
  const story = useTryout(id, (now) => now.log?.timeline);
  const execution = useTryout(id, (now) => now.execution) ?? "";
  const last = useQuery(lastRuns(id));
  const shown = story ? [{ execution, story, definition: draft.shown }] : [];
  const currentInputs = () => {
    const { input, pins } = tryoutOf(id).getState();
    return [draft.shown, input, pins];
  };
  const cost = useMutation<TrialReport, ApiError>({
    mutationFn: async () => {
      const of = currentInputs();
      return { found: await estimateTrial(id, { ...trialRequest(id, draft), pinned: pinsOf(id, draft) }), of };
    },
    onMutate: () => tryoutOf(id).getState().setStartError(null),
  });
  return {
    run,
    pin,
    cost,
    /** Whether the report matches the workflow and the input on the screen. */
    isCurrent: (report: TrialReport) => currentInputs().every((one, nth) => one === report.of[nth]),
    /** Results of the steps of a node, from the displayed run or a previous one. */
    resultsOf: (node: string): Json[] => [...stepsOf([...shown, ...(last.data ?? [])], node).values()],
  };
}

export type TrialVerbs = ReturnType<typeof useTrial>;
