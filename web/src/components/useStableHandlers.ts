import { useLayoutEffect, useRef, useState } from "react";

type Handler = (...args: never[]) => unknown;

/** Return the same functions at every render; each calls the latest one of its name. For components that do much work
 * when they get another function. The names must not change. */
export function useStableHandlers<T extends { [K in keyof T]: Handler }>(handlers: T): T {
  const latest = useRef(handlers);
  useLayoutEffect(() => {
    latest.current = handlers;
  }, [handlers]);
  const [stable] = useState(() => {
    const names = Object.keys(handlers) as (keyof T)[];
    return Object.fromEntries(names.map((name) => [name, (...args: never[]) => latest.current[name](...args)])) as T;
  });
  return stable;
}
