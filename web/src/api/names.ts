/** Names of workflows by id. Lookups made in the same tick share one request. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, query } from "./http";
import type { WorkflowEntry } from "./views";

/** Keep the address within usual length limits. */
const IDS_MAX = 50;
const LETTERS_MAX = 4_000;
/** At most this many numbered variants of an id are tried. */
const NUMBERS = 49;

type Named = Pick<WorkflowEntry, "name" | "names">;
interface PendingLookup {
  resolve: (one: Named | null) => void;
  reject: (why: unknown) => void;
}

const pending = new Map<string, PendingLookup[]>();

function lookUp(id: string): Promise<Named | null> {
  if (pending.size === 0) setTimeout(sendLookups);
  return new Promise((resolve, reject) =>
    pending.set(id, [...(pending.get(id) ?? []), { resolve: resolve, reject: reject }]),
  );
}

function sendLookups(): void {
  const all = new Map(pending);
  pending.clear();
  for (const ids of chunksOf([...all.keys()])) {
    const lookups = (id: string) => all.get(id) ?? [];
    apiRequest<{ workflows: WorkflowEntry[] }>(
      `/api/workflows${query({ id: ids, disabled: "true", limit: IDS_MAX })}`,
    ).then(
      ({ workflows }) => {
        const found = new Map(workflows.map((one) => [one.id, one]));
        for (const id of ids) for (const lookup of lookups(id)) lookup.resolve(found.get(id) ?? null);
      },
      (why) => {
        for (const id of ids) for (const lookup of lookups(id)) lookup.reject(why);
      },
    );
  }
}

export function chunksOf(ids: readonly string[]): string[][] {
  const found: string[][] = [];
  let room = 0;
  for (const id of ids) {
    room -= encodeURIComponent(id).length;
    if (room < 0 || (found.at(-1)?.length ?? IDS_MAX) === IDS_MAX) {
      found.push([]);
      room = LETTERS_MAX - encodeURIComponent(id).length;
    }
    found.at(-1)?.push(id);
  }
  return found;
}

/** Null if the workflow does not exist or the user may not see it. */
export const workflowName = (id: string) =>
  queryOptions({ queryKey: ["workflows", "name", id], queryFn: () => lookUp(id), staleTime: 30_000 });

/** Return the id, or the id with the first number that is free. If the lookup fails, the id is returned and saving it
 * reports the conflict. */
export async function freeId(id: string): Promise<string> {
  const tried = [id, ...Array.from({ length: NUMBERS }, (_, at) => `${id}-${at + 2}`)];
  const found = await Promise.all(tried.map(lookUp)).catch(() => []);
  return tried.find((_, at) => !found[at]) ?? id;
}
