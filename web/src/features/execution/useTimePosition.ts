/** The displayed position in the journal; null for the present. It survives a reload, but not leaving the page. */
import { useEffect, useState } from "react";
import { windowStorage } from "@/browserStorage";

const STORAGE_KEY = "pointsman.at.";

export function useTimePosition(execution: string): [number | null, (upTo: number | null) => void] {
  const name = STORAGE_KEY + execution;
  const [upTo, move] = useState(() => Number(windowStorage.read(name)) || null);
  useEffect(() => {
    windowStorage.write(name, upTo === null ? null : String(upTo));
  }, [name, upTo]);
  useEffect(() => () => void windowStorage.write(name, null), [name]);
  return [upTo, move];
}
