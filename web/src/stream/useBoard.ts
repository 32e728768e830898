/** Refetch lists, inbox and badge when the board stream reports changes; changes in quick succession share one
 * refetch. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { now } from "@/clock";
import { BOARD, type Streams, sharedStreams } from "./subscribe";

const GATHERS_MS = 300;
const STALE: readonly (readonly string[])[] = [["executions"], ["workflows", "found"], ["inbox"]];

/** `who` is the user's name; "" means nobody is logged in, undefined that the user is not known yet. */
export function useBoard(who: string | undefined): void {
  const client = useQueryClient();
  const before = useRef(who);
  useEffect(() => {
    if (who === undefined) return;
    if (before.current !== undefined && before.current !== who) sharedStreams().restart();
    before.current = who;
    return who ? watchBoard(client) : undefined;
  }, [client, who]);
  useEffect(() => sharedStreams().onRestart(() => void client.resetQueries()), [client]);
}

/** Ask the board for changes since before the pages loaded, so that none is missed and opening the board refetches
 * nothing. After a reconnect everything is refetched. */
export function watchBoard(client: QueryClient, streams: Pick<Streams, "subscribe"> = sharedStreams()): () => void {
  let isOpened = false;
  let timer: ReturnType<typeof setTimeout> | null = null;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = null;
      // An invalidation would cancel the running fetch: wait for it.
      if (STALE.some((queryKey) => client.isFetching({ queryKey: [...queryKey] }) > 0)) return soon();
      for (const queryKey of STALE) void client.invalidateQueries({ queryKey: [...queryKey] });
    }, GATHERS_MS);
  };
  const after = now().toFixed(6);
  const leave = streams.subscribe(BOARD, {
    after,
    onEvent: soon,
    onConnection: (connection) => {
      if (connection === "open" && isOpened) soon();
      isOpened ||= connection === "open";
    },
  });
  return () => {
    if (timer !== null) clearTimeout(timer);
    leave();
  };
}
