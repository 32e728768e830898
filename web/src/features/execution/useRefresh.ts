/** What only the server knows of an execution (open gates, output) is read again when its journal moved: at once where
that matters, and never so often that reading a long journal is all the server does. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

const SOON_MS = 400;
/** A journal of so many rows may be read again each second. */
const ROWS_PER_SECOND = 1000;

export function useRefresh(id: string, seq: number, status: string): void {
  const client = useQueryClient();
  const at = useRef(0);
  const known = useRef(status);
  useEffect(() => {
    if (seq === 0) return;
    const turned = known.current !== status;
    known.current = status;
    const rest = Math.max(SOON_MS, (seq / ROWS_PER_SECOND) * 1000);
    const wait = turned ? 0 : Math.max(0, at.current + rest - Date.now());
    const timer = setTimeout(() => {
      at.current = Date.now();
      void client.invalidateQueries({ queryKey: ["execution", id], exact: true });
    }, wait);
    return () => clearTimeout(timer);
  }, [client, id, seq, status]);
}
