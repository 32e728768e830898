/** What is being written, through a reload of this window. */
import { useState } from "react";
import { windowShelf } from "@/shelf";

const KEPT_AS = "pointsman.written.";

export function useKept(name: string): [string, (text: string) => void] {
  const [text, set] = useState(() => windowShelf.read(KEPT_AS + name) ?? "");
  const write = (next: string) => {
    set(next);
    windowShelf.write(KEPT_AS + name, next || null);
  };
  return [text, write];
}

/** It was said: a reload does not bring it back to be said twice. */
export function forgetKept(name: string): void {
  windowShelf.write(KEPT_AS + name, null);
}
