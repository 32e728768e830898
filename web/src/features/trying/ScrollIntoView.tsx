/** Something that came by itself is scrolled to: on a phone it would stand below what is seen. */
import { type ReactNode, useEffect, useRef } from "react";

export function ScrollIntoView({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Some browsers answer with a promise, which is nothing that cleans up.
    void box.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return <div ref={box}>{children}</div>;
}
