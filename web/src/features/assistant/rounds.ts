/** Designs as the server streams them: each round, then the result. */
import { createParser } from "eventsource-parser";
import { ApiError, errorOf, type Problem } from "@/api/http";
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
  const response = await openStream(path, body, options);
  if (!response.ok || !response.body) throw await errorOf(response);
  let answer: { value: T } | null = null;
  let failed: ApiError | null = null;
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === "round") options.onRound(JSON.parse(data) as Round);
      else if (event === "done") answer = { value: JSON.parse(data) as T };
      else if (event === "problem") {
        const message = JSON.parse(data) as { status: number; code: string; detail: string; hint: string };
        failed = new ApiError(message.status, message);
      }
    },
  });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read())
      parser.feed(decoder.decode(next.value, { stream: true }));
  } catch (why) {
    if (options.signal.aborted) throw why;
    throw away();
  }
  if (failed) throw failed;
  if (!answer) throw away();
  return (answer as { value: T }).value;
}

async function openStream(
  path: string,
  body: object,
  options: { signal: AbortSignal; headers?: Record<string, string> },
) {
  try {
    return await fetch(path, {
      method: "POST",
      headers: { ...options.headers, accept: "text/event-stream", "content-type": "application/json" },
      body: JSON.stringify(body),
      credentials: "same-origin",
      signal: options.signal,
    });
  } catch (why) {
    if (options.signal.aborted) throw why;
    throw away();
  }
}

function away(): ApiError {
  return new ApiError(0, { detail: "The server does not answer.", code: "unreachable" });
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
