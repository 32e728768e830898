/** The limit that stopped an execution, by the name under which it is raised. */
import type { Execution } from "@/api/views";

/** Its number says how often the same may be said: nobody is asked for it, as many tries are given once more. */
export const NO_PROGRESS = "no-progress";
/** Whose numbers are seconds. */
export const IN_SECONDS: ReadonlySet<string> = new Set(["executionTime", "deadline"]);

export type Stopped = { name: string; message: string; offer: NonNullable<Execution["limit"]> | null };

export function limitIn(one: Pick<Execution, "status" | "errors" | "limit">): Stopped | null {
  const offer = one.limit ?? null;
  if (one.status !== "interrupted" && !(one.status === "paused" && offer)) return null;
  const why = one.errors.findLast((error) => error.code.startsWith("limit-"));
  return why ? { name: why.code.slice("limit-".length), message: why.message, offer } : null;
}
