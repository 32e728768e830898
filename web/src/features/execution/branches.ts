/** The forks of a family as a tree: each under the execution it left, where it left. */
import type { Schemas } from "@/api/views";

export interface Branch {
  execution: string;
  depth: number;
  row: number | null;
  before: string | null;
  /** As lists show it; undefined of the one that is looked at. */
  entry: Schemas["ForkEntry"] | undefined;
}

interface Known {
  execution: string;
  origin: string | null;
  row: number | null;
  before: string | null;
  entry: Schemas["ForkEntry"] | undefined;
}

export function branchesOf(self: string, kin: Schemas["Relations"]): Branch[] {
  const all: Known[] = [
    ...kin.forks.map((one) => ({
      execution: one.executionId,
      origin: one.origin,
      row: one.row,
      before: one.before,
      entry: one,
    })),
    {
      execution: self,
      origin: kin.origin?.origin ?? null,
      row: kin.origin?.row ?? null,
      before: kin.origin?.before ?? null,
      entry: undefined,
    },
  ];
  const there = new Set(all.map((one) => one.execution));
  const found: Branch[] = [];
  const put = (one: Known, depth: number) => {
    found.push({ execution: one.execution, depth, row: one.row, before: one.before, entry: one.entry });
    const under = all.filter((other) => other.origin === one.execution);
    for (const other of under.sort((a, b) => (a.row ?? 0) - (b.row ?? 0))) put(other, depth + 1);
  };
  // What was deleted since, or is not shown, leaves its forks at the top.
  for (const one of all) if (one.origin === null || !there.has(one.origin)) put(one, 0);
  return found;
}
