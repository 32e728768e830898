/** A value as the rows of a tree: open branches, and the branches that contain matches of a search. */
import type { Json } from "@/api/views";
import { brief, isObject, pathText, type ValuePath } from "./changes";

export interface TreeRow {
  path: ValuePath;
  text: string;
  name: string;
  value: Json;
  /** Undefined for a leaf. */
  isOpen: boolean | undefined;
}

export const ROWS_MAX = 500;

/** Type of dragged data: the path of a value, as an expression writes it. */
export const DRAGGED_PATH = "application/x-pointsman-path";

export function rowsOf(
  value: Json,
  isOpen: (text: string, depth: number) => boolean,
  searchText = "",
): { rows: TreeRow[]; isCut: boolean } {
  const rows: TreeRow[] = [];
  const lowered = searchText.trim().toLowerCase();
  let isCut = false;
  const walk = (inside: Json, path: ValuePath): boolean => {
    let found = false;
    for (const [name, one] of childrenOf(inside)) {
      if (rows.length >= ROWS_MAX) {
        isCut = true;
        return found;
      }
      const at = [...path, name];
      const text = pathText(at);
      const isBranch = childrenOf(one).length > 0;
      const row: TreeRow = { path: at, text, name: String(name), value: one, isOpen: undefined };
      const place = rows.push(row) - 1;
      const isSought = !lowered || text.toLowerCase().includes(lowered) || (!isBranch && containsText(one, lowered));
      if (isBranch) row.isOpen = lowered ? true : isOpen(text, path.length);
      const isInside = isBranch && row.isOpen ? walk(one, at) : false;
      if (isSought || isInside) found = true;
      else rows.splice(place);
    }
    return found;
  };
  walk(value, []);
  return { rows, isCut };
}

function containsText(value: Json, lowered: string): boolean {
  return brief(value, 100_000).toLowerCase().includes(lowered);
}

function childrenOf(value: Json): [string | number, Json][] {
  if (Array.isArray(value)) return value.map((one, at) => [at, one]);
  return isObject(value) ? Object.entries(value) : [];
}
