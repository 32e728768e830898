/** Folders of workflows: their list, their sharing, and moving workflows. */
import { queryOptions } from "@tanstack/react-query";
import { ApiError, apiRequest, apiResponse, ifMatch, query } from "@/api/http";
import type { CatalogueEntry, Schemas } from "@/api/views";
import type { Audience, Sharing } from "./catalogue";

export type Folder = Schemas["FolderView"];

const at = (path: string) => `/api/folders${query({ path })}`;

export const folders = () =>
  queryOptions({
    queryKey: ["workflows", "folders"],
    queryFn: ({ signal }) => apiRequest<{ folders: Folder[] }>("/api/folders", { signal }).then((one) => one.folders),
  });
export const createFolder = (path: string) => apiRequest<Folder>("/api/folders", { body: { path } });
export const renameFolder = (path: string, to: string) =>
  apiRequest<void>(at(path), { method: "PATCH", body: { path: to } });
export const deleteFolder = (path: string) => apiRequest<void>(at(path), { method: "DELETE" });

export const folderSharing = (path: string) =>
  queryOptions({
    queryKey: ["workflows", "folders", path, "sharing"],
    queryFn: ({ signal }) => apiResponse<Sharing>(`/api/folders/sharing${query({ path })}`, { signal }),
  });
export const shareFolder = (path: string, etag: string | null, audience: Audience, groups: readonly string[]) =>
  apiResponse<Sharing>(`/api/folders/sharing${query({ path })}`, {
    method: "PUT",
    body: { audience, groups },
    ...ifMatch(etag),
  });

/** Move one after another. Returns those that were not moved, with the reason. */
export async function moveEach(entries: readonly Pick<CatalogueEntry, "id">[], folder: string) {
  const failed: { id: string; why: ApiError }[] = [];
  for (const { id } of entries) {
    try {
      await apiRequest(`/api/workflows/${encodeURIComponent(id)}/folder`, { method: "PUT", body: { folder } });
    } catch (why) {
      if (!(why instanceof ApiError)) throw why;
      failed.push({ id, why });
    }
  }
  return failed;
}

export const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
export const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

/** The paths of a folder and of those around it, outermost first. */
export const around = (path: string) => {
  const parts = path ? path.split("/") : [];
  return parts.map((_, at) => parts.slice(0, at + 1).join("/"));
};
