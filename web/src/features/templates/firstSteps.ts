/** The tour for new users: three steps, which the browser remembers. */
import { create } from "zustand";
import { browserStorage } from "@/browserStorage";

export const STEPS = ["try", "use", "run"] as const;
export type Step = (typeof STEPS)[number] | "closed";
const KEY = "pointsman.firstSteps";

/** The steps that were reached; `closed`: the user has closed the tour. */
export const useFirstSteps = create<{ reached: ReadonlySet<string> }>(() => ({
  reached: new Set((browserStorage.read(KEY) ?? "").split(" ").filter(Boolean)),
}));

export function reachStep(step: Step): void {
  const { reached } = useFirstSteps.getState();
  if (reached.has(step)) return;
  const next = new Set([...reached, step]);
  browserStorage.write(KEY, [...next].join(" "));
  useFirstSteps.setState({ reached: next });
}
