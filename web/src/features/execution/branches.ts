/** The forks of an execution as a tree: each below its origin, ordered by the row at which it was forked. */
import type { Schemas } from "@/api/views";

export interface Branch {
  execution: string;
  depth: number;
  row: number | null;
  before: string | null;
  /** The entry as lists show it; undefined for the current execution. */
  entry: Schemas["ForkEntry"] | undefined;
}

interface ForkRecord {
  execution: string;
  origin: string | null;
  row: number | null;
  before: string | null;
  entry: Schemas["ForkEntry"] | undefined;
}

export function branchesOf(self: string, relations: Schemas["Relations"]): Branch[] {
  const all: ForkRecord[] = [
    ...relations.forks.map((one) => ({
      execution: one.executionId,
      origin: one.origin,
      row: one.row,
      before: one.before,
      entry: one,
    })),
    {
      execution: self,
      origin: relations.origin?.origin ?? null,
      row: relations.origin?.row ?? null,
      before: relations.origin?.before ?? null,
      entry: undefined,
    },
  ];
  const known = new Set(all.map((one) => one.execution));
  const found: Branch[] = [];
  const put = (one: ForkRecord, depth: number) => {
    found.push({ execution: one.execution, depth, row: one.row, before: one.before, entry: one.entry });
    const under = all.filter((other) => other.origin === one.execution);
    for (const other of under.sort((a, b) => (a.row ?? 0) - (b.row ?? 0))) put(other, depth + 1);
  };
  // If the origin is deleted or hidden from the caller, its forks become roots.
  for (const one of all) if (one.origin === null || !known.has(one.origin)) put(one, 0);
  return found;
}
