/**
 * The server's time, estimated from its responses if the clock of this machine is wrong.
 *
 * A response carries the time in whole seconds, taken at some moment between request and arrival. So each response
 * bounds the difference of the clocks from both sides, and the bounds narrow with each response. If zero lies between
 * the bounds, the local clock is taken as right.
 */
import { useSyncExternalStore } from "react";

let least = Number.NEGATIVE_INFINITY;
let most = Number.POSITIVE_INFINITY;
let shift = 0;
const listeners = new Set<() => void>();

/** Update the bounds from the `Date` of a response; `asked` and `heard` are local times in seconds, before and after
 * the request. */
export function updateServerTime(date: string | null, asked: number, heard: number): void {
  const told = Date.parse(date ?? "") / 1000;
  if (Number.isNaN(told)) return;
  const [from, to] = [told - heard, told + 1 - asked];
  // One of the clocks was set meanwhile: the old bounds are invalid.
  const isSet = from > most || to < least;
  least = isSet ? from : Math.max(least, from);
  most = isSet ? to : Math.min(most, to);
  const next = least <= 0 && most >= 0 ? 0 : (least + most) / 2;
  if (next === shift) return;
  shift = next;
  for (const listener of listeners) listener();
}

/** The server's time in Unix seconds. */
export function now(): number {
  return Date.now() / 1000 + shift;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The server's time in a component; renders again when the estimated difference changes. */
export function useNow(): number {
  useSyncExternalStore(subscribe, () => shift);
  return now();
}
