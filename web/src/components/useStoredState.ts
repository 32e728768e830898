/** Text that the user is writing; it survives a reload of the window. */
import { useState } from "react";
import { windowStorage } from "@/browserStorage";

const STORAGE_PREFIX = "pointsman.written.";

export function useStoredState(name: string): [string, (text: string) => void] {
  const [text, set] = useState(() => windowStorage.read(STORAGE_PREFIX + name) ?? "");
  const write = (next: string) => {
    set(next);
    windowStorage.write(STORAGE_PREFIX + name, next || null);
  };
  return [text, write];
}

/** Delete the stored text after it was sent, so that a reload does not restore it. */
export function removeStoredState(name: string): void {
  windowStorage.write(STORAGE_PREFIX + name, null);
}
