/** The place in the journal that is looked at; null: now. A reload stays there, leaving the page does not. */
import { useEffect, useState } from "react";
import { windowStorage } from "@/browserStorage";

const KEPT_AS = "pointsman.at.";

export function useTimePosition(execution: string): [number | null, (upTo: number | null) => void] {
  const name = KEPT_AS + execution;
  const [upTo, move] = useState(() => Number(windowStorage.read(name)) || null);
  useEffect(() => {
    windowStorage.write(name, upTo === null ? null : String(upTo));
  }, [name, upTo]);
  useEffect(() => () => void windowStorage.write(name, null), [name]);
  return [upTo, move];
}
