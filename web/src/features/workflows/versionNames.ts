/** Named versions of a workflow: how a revision is called, and whether it is a draft. */
import { useQueryClient } from "@tanstack/react-query";
import type { TFunction } from "i18next";
import { workflow } from "@/api/queries";
import type { WorkflowEntry } from "@/api/views";

/** Name of a revision: its own, or its number. */
export const versionName = (entry: Pick<WorkflowEntry, "label" | "revision">, t: TFunction) =>
  entry.label ? t("versions.named", { name: entry.label.name }) : t("workflows.revision", { revision: entry.revision });

/** A later revision than the published one: it does not run by id. */
export const isDraft = (entry: WorkflowEntry) => entry.published !== null && entry.revision > entry.published.revision;

/** Reload what shows the versions of a workflow. */
export function useVersionsChanged(id: string) {
  const client = useQueryClient();
  return async () => {
    await client.fetchQuery({ ...workflow(id), staleTime: 0 });
    await client.invalidateQueries({ queryKey: ["revisions", id] });
    await client.invalidateQueries({ queryKey: ["workflows"] });
  };
}
