/** Points in time and durations for display. */

import { now } from "@/clock";
import { amount } from "./amounts";

export function ago(at: number, language: string, from = now()): string {
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const seconds = at - from;
  const size = Math.abs(seconds);
  if (size < 60) return format.format(Math.round(seconds), "second");
  if (size < 3600) return format.format(Math.round(seconds / 60), "minute");
  if (size < 86_400) return format.format(Math.round(seconds / 3600), "hour");
  return format.format(Math.round(seconds / 86_400), "day");
}

export function moment(at: number, language: string): string {
  return new Date(at * 1000).toLocaleString(language, { dateStyle: "medium", timeStyle: "medium" });
}

/** A duration with suitable precision: 0.4 ms, 45 ms, 0.4 s, 12 s, 3 min 20 s, 2 h, 3 d 4 h. */
export function span(seconds: number): string {
  const ms = seconds * 1000;
  if (ms < 99.5) return `${shortest(ms, ms < 9.95 ? 1 : 0)} ms`;
  if (seconds < 9.95) return `${shortest(seconds, seconds < 0.995 ? 2 : 1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  if (seconds < 3570) return twoOf(Math.round(seconds), 60, "min", "s");
  if (seconds < 84_600) return twoOf(Math.round(seconds / 60), 60, "h", "min");
  return twoOf(Math.round(seconds / 3600), 24, "d", "h");
}

function shortest(value: number, digits: number): string {
  return amount(Math.max(value, 0), digits);
}

/** Format a count in a larger unit, plus the rest in the smaller unit unless it is zero. */
function twoOf(count: number, size: number, larger: string, smaller: string): string {
  const rest = count % size;
  return `${Math.floor(count / size)} ${larger}${rest > 0 ? ` ${rest} ${smaller}` : ""}`;
}
