/** Columns of the list of executions: which of them the user shows, in this browser. */
import { useState } from "react";
import { browserStorage } from "@/browserStorage";

export const COLUMNS = ["by", "input", "now", "duration", "steps", "cost"] as const;

export type ColumnName = (typeof COLUMNS)[number];

/** These need the whole execution, which is loaded for each row; the others are part of the list. */
export const DETAIL_COLUMNS: ReadonlySet<ColumnName> = new Set(["input", "now", "steps", "cost"]);

const DEFAULT: readonly ColumnName[] = ["by", "duration"];
const KEY = "pointsman.executions.columns";

export function readColumns(stored: string | null): readonly ColumnName[] {
  if (stored === null) return DEFAULT;
  return COLUMNS.filter((one) => stored.split(" ").includes(one));
}

export function useColumns(): [readonly ColumnName[], (column: ColumnName) => void] {
  const [columns, set] = useState(() => readColumns(browserStorage.read(KEY)));
  const toggle = (column: ColumnName) => {
    const next = COLUMNS.filter((one) => columns.includes(one) !== (one === column));
    set(next);
    browserStorage.write(KEY, next.join(" "));
  };
  return [columns, toggle];
}
