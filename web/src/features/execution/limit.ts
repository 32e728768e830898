/** The limit that stopped an execution, under the name by which it can be raised. */
import type { Execution } from "@/api/views";

/** This limit counts repetitions. The user is not asked for a number: the server grants the same number of tries
 * again. */
export const NO_PROGRESS = "no-progress";
/** Limits in seconds. */
export const IN_SECONDS: ReadonlySet<string> = new Set(["executionTime", "deadline"]);

export type ExceededLimit = { name: string; message: string; offer: NonNullable<Execution["limit"]> | null };

export function limitIn(one: Pick<Execution, "status" | "errors" | "limit">): ExceededLimit | null {
  const offer = one.limit ?? null;
  if (one.status !== "interrupted" && !(one.status === "paused" && offer)) return null;
  const why = one.errors.findLast((error) => error.code.startsWith("limit-"));
  return why ? { name: why.code.slice("limit-".length), message: why.message, offer } : null;
}
