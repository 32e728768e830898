/** The verbs of trying, and what is known of the last time, for the panel that shows it. */
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ApiError } from "@/api/http";
import type { Json } from "@/api/views";
import { useWork } from "../editor/work";
import { type Estimated, estimate } from "./asking";
import { broughtBy, lastStory } from "./last";
import { useTryout } from "./tryout";
import { askedFor, useRun } from "./useRun";

export function useTrial() {
  const { id, draft } = useWork();
  const { run } = useRun();
  const story = useTryout(id, (now) => now.log?.story);
  const last = useQuery({ ...lastStory(id), staleTime: 30_000 });
  const known = story && story.order.length > 0 ? story : last.data;
  const cost = useMutation<Estimated, ApiError>({ mutationFn: () => estimate(id, askedFor(id, draft)) });
  return {
    run,
    cost,
    /** What a node brought, now or last time; undefined: nobody knows. */
    brought: (node: string): Json | undefined => broughtBy(known, node),
  };
}

export type TrialVerbs = ReturnType<typeof useTrial>;
