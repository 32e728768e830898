/** Lists that the server gives out page by page. */
import { ask, query } from "./http";

const PAGE = 200;

export type Paged<Name extends string, T> = Record<Name, T[]> & { next?: string | null };

/** The whole of a list that is short by its nature (the revisions of an agent, webhooks): all of its pages, one after another. */
export async function every<T>(
  path: string,
  name: string,
  filter: Record<string, string | undefined> = {},
  signal?: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  let after: string | null = null;
  do {
    const address: string = `${path}${query({ ...filter, after, limit: PAGE })}`;
    const page: Record<string, unknown> = await ask(address, signal ? { signal } : {});
    found.push(...(page[name] as T[]));
    after = (page.next as string | null | undefined) ?? null;
  } while (after !== null);
  return found;
}
