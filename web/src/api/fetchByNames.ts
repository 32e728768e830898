/** Load entries of a list by name, however long the list is. */
import { apiRequest, query } from "./http";
import { chunksOf } from "./names";

/** Return the entries that exist. `list` is the field of the response, `by` the query parameter with the names. */
export async function fetchByNames<T>(
  path: string,
  list: string,
  by: "id" | "name",
  names: readonly string[],
  signal: AbortSignal,
): Promise<T[]> {
  const pages = await Promise.all(
    chunksOf([...new Set(names)]).map((some) =>
      apiRequest<Record<string, T[]>>(`${path}${query({ [by]: some, limit: some.length })}`, { signal }),
    ),
  );
  return pages.flatMap((one) => one[list] ?? []);
}
