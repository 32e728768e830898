/** Differences between two values, and their paths as expressions write them. */
import type { Json } from "@/api/views";

export type ValuePath = readonly (string | number)[];

export interface ValueChange {
  path: ValuePath;
  /** Undefined if the value was added. */
  before: Json | undefined;
  /** Undefined if the value was removed. */
  after: Json | undefined;
}

/** At most this many differences are listed. */
export const CHANGES_MAX = 1000;

export function changesIn(before: Json | undefined, after: Json | undefined): ValueChange[] {
  const found: ValueChange[] = [];
  compare(before, after, [], found);
  return found;
}

function compare(before: Json | undefined, after: Json | undefined, path: ValuePath, found: ValueChange[]): void {
  if (found.length >= CHANGES_MAX || before === after) return;
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
      compare(before[key], after[key], [...path, key], found);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    for (let at = 0; at < Math.max(before.length, after.length); at++)
      compare(before[at], after[at], [...path, at], found);
  } else found.push({ path, before, after });
}

export function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Format a path as an expression: `letter.lines[0]["odd name"]`. */
export function pathText(path: ValuePath): string {
  return path
    .map((part, at) =>
      typeof part === "number"
        ? `[${part}]`
        : NAME.test(part)
          ? at === 0
            ? part
            : `.${part}`
          : `[${JSON.stringify(part)}]`,
    )
    .join("");
}

export function valueAt(value: Json | undefined, path: ValuePath): Json | undefined {
  let at = value;
  for (const part of path) {
    if (Array.isArray(at) && typeof part === "number") at = at[part];
    else if (isObject(at)) at = at[String(part)];
    else return undefined;
  }
  return at;
}

/** Format on one line, cut to a length. */
export function brief(value: Json | undefined, length = 80): string {
  if (value === undefined) return "–";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
