/**
 * What time it is on the server: by its answers, where the clock of this machine is wrong.
 *
 * An answer says its time in whole seconds, and it was given some time between asking and hearing: so the difference of
 * the clocks lies between two bounds, which come closer with each answer. A clock that fits between them is right.
 */
import { useSyncExternalStore } from "react";

let least = Number.NEGATIVE_INFINITY;
let most = Number.POSITIVE_INFINITY;
let shift = 0;
const listeners = new Set<() => void>();

/** What an answer says in its `Date`; by the clock of this machine, in seconds, when it was asked for and heard. */
export function hearTime(date: string | null, asked: number, heard: number): void {
  const told = Date.parse(date ?? "") / 1000;
  if (Number.isNaN(told)) return;
  const [from, to] = [told - heard, told + 1 - asked];
  // One of the clocks was set meanwhile: what was known is of the past.
  const isSet = from > most || to < least;
  least = isSet ? from : Math.max(least, from);
  most = isSet ? to : Math.min(most, to);
  const next = least <= 0 && most >= 0 ? 0 : (least + most) / 2;
  if (next === shift) return;
  shift = next;
  for (const listener of listeners) listener();
}

/** Unix seconds, as the server counts them. */
export function now(): number {
  return Date.now() / 1000 + shift;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The same for who asks by it before anything was answered: told again when the difference is known. */
export function useNow(): number {
  useSyncExternalStore(subscribe, () => shift);
  return now();
}
