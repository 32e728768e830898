/**
 * The server's time, estimated from its responses if the clock of this machine is wrong.
 *
 * A response carries the time in whole seconds, taken at some moment between request and arrival. So each response
 * bounds the difference of the clocks from both sides, and the bounds narrow with each response. If zero lies between
 * the bounds, the local clock is taken as right.
 */
import { useSyncExternalStore } from "react";

let minimum = Number.NEGATIVE_INFINITY;
let maximum = Number.POSITIVE_INFINITY;
let shift = 0;
const listeners = new Set<() => void>();

/** Update the bounds from the `Date` of a response; `sentAt` and `receivedAt` are local times in seconds, before and after
 * the request. */
export function updateServerTime(date: string | null, sentAt: number, receivedAt: number): void {
  const serverTime = Date.parse(date ?? "") / 1000;
  if (Number.isNaN(serverTime)) return;
  const [from, to] = [serverTime - receivedAt, serverTime + 1 - sentAt];
  // One of the clocks was set meanwhile: the old bounds are invalid.
  const isSet = from > maximum || to < minimum;
  minimum = isSet ? from : Math.max(minimum, from);
  maximum = isSet ? to : Math.min(maximum, to);
  const next = minimum <= 0 && maximum >= 0 ? 0 : (minimum + maximum) / 2;
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
