/** Lists, inbox and badge follow the board: what changed is read again, many changes at once are one look. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { now } from "@/clock";
import { BOARD, type Streams, sharedStreams } from "./subscribe";

const GATHERS_MS = 300;
const STALE: readonly (readonly string[])[] = [["executions"], ["workflows", "found"], ["inbox"]];

/** `who` looks: nobody is "", and undefined where that is not known yet. */
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

/**
 * It is asked for what changed since before the pages began to read, so that nothing is lost between them and nothing is
 * read twice because it opened. Whoever was away for a while reads again.
 */
export function watchBoard(client: QueryClient, streams: Pick<Streams, "subscribe"> = sharedStreams()): () => void {
  let isOpened = false;
  let timer: ReturnType<typeof setTimeout> | null = null;
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = null;
      // Asking again would give up the page that is being read: it is waited for.
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
