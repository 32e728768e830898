/** Things of a list by their names: however long the list is, only these are asked for. */
import { ask, query } from "./http";
import { portions } from "./names";

/** Those that are there. `list`: what the answer calls them; `by`: what the question calls their names. */
export async function allNamed<T>(
  path: string,
  list: string,
  by: "id" | "name",
  names: readonly string[],
  signal: AbortSignal,
): Promise<T[]> {
  const told = await Promise.all(
    portions([...new Set(names)]).map((some) =>
      ask<Record<string, T[]>>(`${path}${query({ [by]: some, limit: some.length })}`, { signal }),
    ),
  );
  return told.flatMap((one) => one[list] ?? []);
}
