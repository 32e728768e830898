/** Requests whose answer is a stream of events, by POST, which an `EventSource` cannot send. */
import { createParser } from "eventsource-parser";
import { ApiError, errorOf } from "./http";

/** Post a body and pass on each event until the stream ends. Throws `ApiError` if the request is refused or the stream
 * breaks off; `signal` cancels the work on the server too. */
export async function postForEvents(
  path: string,
  body: object,
  options: { signal?: AbortSignal; onEvent: (event: string, data: unknown) => void; headers?: Record<string, string> },
): Promise<void> {
  const response = await openStream(path, body, options);
  if (!response.ok || !response.body) throw await errorOf(response);
  const parser = createParser({
    onEvent: ({ event, data }) => options.onEvent(event ?? "message", JSON.parse(data) as unknown),
  });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read())
      parser.feed(decoder.decode(next.value, { stream: true }));
  } catch (why) {
    if (options.signal?.aborted) throw why;
    throw away();
  }
}

async function openStream(
  path: string,
  body: object,
  options: { signal?: AbortSignal; headers?: Record<string, string> },
) {
  try {
    return await fetch(path, {
      method: "POST",
      headers: { ...options.headers, accept: "text/event-stream", "content-type": "application/json" },
      body: JSON.stringify(body),
      credentials: "same-origin",
      signal: options.signal ?? null,
    });
  } catch (why) {
    if (options.signal?.aborted) throw why;
    throw away();
  }
}

/** The error of a server that does not answer. */
export function away(): ApiError {
  return new ApiError(0, { detail: "The server does not answer.", code: "unreachable" });
}
