/** Scroll new content into view; on a phone it would appear below the visible area. */
import { type ReactNode, useEffect, useRef } from "react";

export function ScrollIntoView({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Some browsers return a promise, which must not become the cleanup function of the effect.
    void box.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return <div ref={box}>{children}</div>;
}
