/** Refetch the parts of an execution that only the server computes (open gates, output) when its journal grows: at once
 * after a change of status, otherwise at a limited rate, so that a long journal does not overload the server. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

const SOON_MS = 400;
/** A journal of this many rows is read at most once per second. */
const ROWS_PER_SECOND = 1000;

export function useRefresh(id: string, seq: number, status: string): void {
  const client = useQueryClient();
  const at = useRef(0);
  const known = useRef(status);
  useEffect(() => {
    if (seq === 0) return;
    const hasNewStatus = known.current !== status;
    known.current = status;
    const rest = Math.max(SOON_MS, (seq / ROWS_PER_SECOND) * 1000);
    const wait = hasNewStatus ? 0 : Math.max(0, at.current + rest - Date.now());
    const timer = setTimeout(() => {
      at.current = Date.now();
      void client.invalidateQueries({ queryKey: ["execution", id], exact: true });
    }, wait);
    return () => clearTimeout(timer);
  }, [client, id, seq, status]);
}
