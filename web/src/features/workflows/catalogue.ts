/** The list of workflows: search, pages, and the actions on entries. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ApiError, apiRequest, apiResponse, ifMatch, query } from "@/api/http";
import type { CatalogueEntry, Schemas } from "@/api/views";

export const SORTS = ["name", "saved"] as const;
export type Sort = (typeof SORTS)[number];

/** The search as it stands in the address, so that a user can share the link. */
export interface CatalogueSearch {
  q?: string;
  tag?: string[];
  /** `saved` sorts the newest first. */
  sort?: Sort;
  /** Only what lies in this folder and the folders in it. */
  folder?: string;
}

const PAGE = 50;
const at = (id: string) => `/api/workflows/${encodeURIComponent(id)}`;

export const catalogue = (search: CatalogueSearch, builtIn: boolean) =>
  infiniteQueryOptions({
    queryKey: ["workflows", "found", search, builtIn],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<{ workflows: CatalogueEntry[]; next: string | null }>(
        `/api/workflows${query({
          disabled: "true",
          builtIn: String(builtIn),
          search: search.q,
          tag: search.tag,
          folder: search.folder,
          sort: search.sort ?? "name",
          order: search.sort === "saved" ? "desc" : "asc",
          last: "true",
          after: pageParam,
          limit: PAGE,
        })}`,
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: (before) => before,
  });

export type Sharing = Schemas["SharingView"];
export type Audience = Sharing["audience"];

export const sharing = (id: string) =>
  queryOptions({
    queryKey: ["workflow", id, "sharing"],
    queryFn: ({ signal }) => apiResponse<Sharing>(`${at(id)}/sharing`, { signal }),
  });

/** `etag` is that of the loaded state; the server rejects the change if the state has changed since. */
export const share = (id: string, etag: string | null, audience: Audience, groups: readonly string[]) =>
  apiResponse<Sharing>(`${at(id)}/sharing`, { method: "PUT", body: { audience, groups }, ...ifMatch(etag) });

/** Switch a workflow on or off. Returns the parts of the author's text that were lost, one sentence each. */
export const enable = async (id: string, enabled: boolean): Promise<string[]> =>
  (await apiRequest<{ losses?: string[] }>(at(id), { method: "PATCH", body: { enabled } })).losses ?? [];

export interface NotDeleted {
  id: string;
  why: ApiError;
}

/** Delete one after another, each with its listed ETag. Returns those that were not deleted, with the reason. */
export async function removeEach(entries: readonly Pick<CatalogueEntry, "id" | "etag">[]): Promise<NotDeleted[]> {
  const notDeleted: NotDeleted[] = [];
  for (const { id, etag } of entries) {
    try {
      await apiRequest<void>(at(id), { method: "DELETE", ...ifMatch(etag) });
    } catch (why) {
      if (!(why instanceof ApiError)) throw why;
      if (why.code !== "unknown-workflow") notDeleted.push({ id, why });
    }
  }
  return notDeleted;
}
