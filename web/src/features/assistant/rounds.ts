/** Designs as the server streams them: each round, then the result. */
import { away, postForEvents } from "@/api/eventStream";
import { ApiError, type Problem } from "@/api/http";
import type { Usage } from "@/api/views";

/** One answer of the model, with the problems found in it. */
export interface Round {
  round: number;
  model: string;
  ok: boolean;
  answer: string;
  problems: Problem[];
  usage: Usage;
}

/** Run a design until it is done. Throws `ApiError` if it fails or the stream breaks off; `signal` cancels the work on
 * the server too. */
export async function streamDesign<T>(
  path: string,
  body: object,
  options: { signal: AbortSignal; onRound: (round: Round) => void; headers?: Record<string, string> },
): Promise<T> {
  let answer: { value: T } | null = null;
  let failed: ApiError | null = null;
  await postForEvents(path, body, {
    ...options,
    onEvent: (event, data) => {
      if (event === "round") options.onRound(data as Round);
      else if (event === "done") answer = { value: data as T };
      else if (event === "problem") {
        const message = data as { status: number; code: string; detail: string; hint: string };
        failed = new ApiError(message.status, message);
      }
    },
  });
  if (failed) throw failed;
  if (!answer) throw away();
  return (answer as { value: T }).value;
}

export interface Cost {
  tokens: number;
  /** Null if the price of a round is unknown. */
  usd: number | null;
}

export function costOf(rounds: readonly Round[]): Cost {
  let usd: number | null = 0;
  let tokens = 0;
  for (const { usage } of rounds) {
    tokens += usage.inputTokens + usage.outputTokens;
    usd = usd === null || usage.costUsd === null ? null : usd + usage.costUsd;
  }
  return { tokens, usd };
}
