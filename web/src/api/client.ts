/** The query client of the app, with the handling of refused requests that all pages share. */
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "./http";

export function makeClient(): QueryClient {
  /** The session has ended: refetch `me`, so that the shell shows the login form. */
  function onError(why: unknown): void {
    if (why instanceof ApiError && why.status === 401 && !(client.getQueryState(["me"])?.error instanceof ApiError))
      void client.invalidateQueries({ queryKey: ["me"] });
  }
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError: (why, query) => (query.queryKey[0] === "me" ? undefined : onError(why)) }),
    mutationCache: new MutationCache({ onError: (why) => onError(why) }),
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        // A refusal is final; an unreachable server is tried again.
        retry: (failures, why) => why instanceof ApiError && why.isUnreachable && failures < 5,
      },
    },
  });
  return client;
}
