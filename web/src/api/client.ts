/** What the pages read is kept by one client; what it does when the server refuses is the same on every page. */
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "./http";

export function makeClient(): QueryClient {
  /** What let somebody in opens nothing any more: they are asked who they are, whatever page they are on. */
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
        // What was refused stays refused; a server that is away is asked again.
        retry: (failures, why) => why instanceof ApiError && why.isAway && failures < 5,
      },
    },
  });
  return client;
}
