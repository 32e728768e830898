/** Two executions side by side: the same steps in one line, and where they part. */
import { changesIn } from "@/values/changes";
import type { StepStory, Story } from "./story";

export interface Pair {
  step: string;
  a: StepStory | undefined;
  b: StepStory | undefined;
  /** How they differ; "same" where they do not. */
  how: "same" | "only-a" | "only-b" | "status" | "result";
}

/** In the order they ran: the steps of the first, and those of the second where they came between them. */
export function pairsOf(a: Story, b: Story): Pair[] {
  const found: Pair[] = [];
  let at = 0;
  const upTo = (end: number) => {
    for (; at < end; at++) {
      const step = b.order[at] as string;
      if (!a.steps.has(step)) found.push(pairOf(step, a, b));
    }
  };
  const places = new Map(b.order.map((step, place) => [step, place]));
  for (const step of a.order) {
    const place = places.get(step);
    if (place !== undefined && place >= at) upTo(place);
    found.push(pairOf(step, a, b));
  }
  upTo(b.order.length);
  return found;
}

function pairOf(step: string, one: Story, other: Story): Pair {
  const [a, b] = [one.steps.get(step), other.steps.get(step)];
  return { step, a, b, how: howOf(a, b) };
}

function howOf(a: StepStory | undefined, b: StepStory | undefined): Pair["how"] {
  if (!a) return "only-b";
  if (!b) return "only-a";
  if (a.status !== b.status) return "status";
  return changesIn(a.result, b.result).length > 0 ? "result" : "same";
}

/** The first place where they differ; -1: they do not. */
export function partsAt(pairs: readonly Pair[]): number {
  return pairs.findIndex((pair) => pair.how !== "same");
}
