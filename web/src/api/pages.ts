/** Lists that the server returns page by page. */
import { apiRequest, query } from "./http";

const PAGE = 200;

export type Paged<Name extends string, T> = Record<Name, T[]> & { next?: string | null };

/** Load all pages of a list that is short by nature, such as webhooks or the revisions of an agent. */
export async function fetchAllPages<T>(
  path: string,
  name: string,
  filter: Record<string, string | undefined> = {},
  signal?: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  let after: string | null = null;
  do {
    const address: string = `${path}${query({ ...filter, after, limit: PAGE })}`;
    const page: Record<string, unknown> = await apiRequest(address, signal ? { signal } : {});
    found.push(...(page[name] as T[]));
    after = (page.next as string | null | undefined) ?? null;
  } while (after !== null);
  return found;
}
