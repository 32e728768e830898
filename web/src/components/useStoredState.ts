/** What is being written, through a reload of this window. */
import { useState } from "react";
import { windowStorage } from "@/browserStorage";

const KEPT_AS = "pointsman.written.";

export function useStoredState(name: string): [string, (text: string) => void] {
  const [text, set] = useState(() => windowStorage.read(KEPT_AS + name) ?? "");
  const write = (next: string) => {
    set(next);
    windowStorage.write(KEPT_AS + name, next || null);
  };
  return [text, write];
}

/** It was said: a reload does not bring it back to be said twice. */
export function removeStoredState(name: string): void {
  windowStorage.write(KEPT_AS + name, null);
}
