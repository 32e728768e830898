/** The place in the journal that is looked at; null: now. A reload stays there, leaving the page does not. */
import { useEffect, useState } from "react";
import { windowShelf } from "@/shelf";

const KEPT_AS = "pointsman.at.";

export function usePlaceInTime(execution: string): [number | null, (upTo: number | null) => void] {
  const name = KEPT_AS + execution;
  const [upTo, move] = useState(() => Number(windowShelf.read(name)) || null);
  useEffect(() => {
    windowShelf.write(name, upTo === null ? null : String(upTo));
  }, [name, upTo]);
  useEffect(() => () => void windowShelf.write(name, null), [name]);
  return [upTo, move];
}
