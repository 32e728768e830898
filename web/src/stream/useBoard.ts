/** Refetch lists, inbox and badge when the board stream reports changes; changes in quick succession share one
 * refetch. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { compareAppVersion } from "@/appVersion";
import { now } from "@/clock";
import { BOARD, type Streams, sharedStreams } from "./subscribe";

const DEBOUNCE_MS = 300;
const STALE: readonly (readonly string[])[] = [["executions"], ["workflows", "found"], ["inbox"]];

/** `userName` is the user's name; "" means no user is logged in, undefined that the user is not known yet. */
export function useBoard(userName: string | undefined): void {
  const client = useQueryClient();
  const before = useRef(userName);
  useEffect(() => {
    if (userName === undefined) return;
    if (before.current !== undefined && before.current !== userName) sharedStreams().restart();
    before.current = userName;
    return userName ? watchBoard(client) : undefined;
  }, [client, userName]);
  useEffect(() => sharedStreams().onRestart(() => void client.resetQueries()), [client]);
}

/** Ask the board for changes since before the pages loaded, so that none is missed and opening the board refetches
 * nothing. After a reconnect everything is refetched. */
export function watchBoard(
  client: QueryClient,
  streams: Pick<Streams, "subscribe"> = sharedStreams(),
  onReconnect: () => unknown = () => compareAppVersion(),
): () => void {
  let isOpened = false;
  let timer: ReturnType<typeof setTimeout> | null = null;
  const refetchSoon = () => {
    timer ??= setTimeout(() => {
      timer = null;
      // An invalidation would cancel the running fetch: wait for it.
      if (STALE.some((queryKey) => client.isFetching({ queryKey: [...queryKey] }) > 0)) return refetchSoon();
      for (const queryKey of STALE) void client.invalidateQueries({ queryKey: [...queryKey] });
    }, DEBOUNCE_MS);
  };
  const after = now().toFixed(6);
  const leave = streams.subscribe(BOARD, {
    after,
    onEvent: refetchSoon,
    onConnection: (connection) => {
      if (connection === "open" && isOpened) {
        refetchSoon();
        void onReconnect();
      }
      isOpened ||= connection === "open";
    },
  });
  return () => {
    if (timer !== null) clearTimeout(timer);
    leave();
  };
}
