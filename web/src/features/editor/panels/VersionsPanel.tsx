/** All revisions: author, time, changes, and rollback. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Eye, GitCompareArrows, Monitor, Undo2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, apiRequest } from "@/api/http";
import { definition, revisions, workflow } from "@/api/queries";
import type { WorkflowEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { IconButton } from "@/components/IconButton";
import { RelativeTime } from "@/components/RelativeTime";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { pictureOf } from "@/graph/model/picture";
import { Canvas } from "@/graph/render/Canvas";
import { useEditor } from "../editorContext";
import { type Compared, DiffView } from "./DiffView";

type Shown = { title: string; compared: Compared } | { title: string; definition: Compared["after"] };

export default function VersionsPanel() {
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const { id, saved, draft, isChanged, mayChange } = useEditor();
  const known = useQuery(revisions(id));
  const [shown, show] = useState<Shown | null>(null);

  const of = (revision: number) => client.fetchQuery(definition(`${id}@${revision}`));
  const textOf = async (revision: number) => (await client.fetchQuery(workflow(`${id}@${revision}`))).value.text;
  const open = useMutation<
    Shown,
    ApiError,
    { entry: WorkflowEntry; before?: number; how: "changes" | "screen" | "look" }
  >({
    mutationFn: async ({ entry, before, how }) => {
      const { revision } = entry;
      if (how === "look") return { title: t("versions.at", { revision }), definition: await of(revision) };
      if (how === "screen")
        return {
          title: t("versions.toScreen", { revision }),
          compared: { before: await of(revision), after: draft.shown },
        };
      const from = before ?? revision;
      const [old, now, was, is] = await Promise.all([of(from), of(revision), textOf(from), textOf(revision)]);
      return {
        title: t("versions.between", { from, to: revision }),
        compared: { before: old, after: now, texts: { before: was, after: is } },
      };
    },
    onSuccess: show,
  });
  const back = useMutation<unknown, ApiError, number>({
    mutationFn: (revision) => apiRequest(`/api/workflows/${encodeURIComponent(id)}/rollback`, { body: { revision } }),
    onSuccess: async () => {
      await Promise.all([
        client.fetchQuery({ ...definition(id), staleTime: 0 }),
        client.fetchQuery({ ...workflow(id), staleTime: 0 }),
      ]);
      await client.invalidateQueries({ queryKey: ["revisions", id] });
      await client.invalidateQueries({ queryKey: ["workflows"] });
    },
  });

  if (known.isPending) return <Loading />;
  if (known.isError) return <ErrorMessage error={known.error} onRetry={() => void known.refetch()} />;
  return (
    <div className="space-y-3">
      {open.isError || back.isError ? <ErrorMessage error={open.error ?? back.error} /> : null}
      {isChanged ? <p className="text-ink-soft">{t("versions.unsaved")}</p> : null}
      <ol className="divide-y divide-line rounded-md border border-line">
        {known.data.map((entry, at) => {
          const { revision } = entry;
          const before = known.data[at + 1]?.revision;
          const isLatest = revision === saved.revision;
          return (
            <li key={revision} className="px-3 py-2">
              <p className="flex flex-wrap items-baseline gap-x-2">
                <span className="font-medium">{t("workflows.revision", { revision })}</span>
                {entry.version ? <span className="text-ink-soft">v{entry.version}</span> : null}
                {isLatest ? <span className="text-xs text-done">{t("versions.latest")}</span> : null}
                <span className="ml-auto text-xs text-ink-faint">
                  {entry.author ? `${entry.author}, ` : ""}
                  {entry.createdAt === null ? null : <RelativeTime at={entry.createdAt} />}
                </span>
              </p>
              <div className="mt-1 flex flex-wrap gap-1">
                {before === undefined ? null : (
                  <Button
                    kind="quiet"
                    onClick={() => open.mutate({ entry, before, how: "changes" })}
                    aria-label={t("versions.changesOf", { revision })}
                  >
                    <GitCompareArrows className="size-4" aria-hidden /> {t("versions.changes")}
                  </Button>
                )}
                <IconButton
                  icon={Monitor}
                  name={t("versions.screenOf", { revision })}
                  onClick={() => open.mutate({ entry, how: "screen" })}
                />
                <IconButton
                  icon={Eye}
                  name={t("versions.lookAt", { revision })}
                  onClick={() => open.mutate({ entry, how: "look" })}
                />
                {isLatest || saved.builtIn || !mayChange ? null : (
                  <IconButton
                    icon={Undo2}
                    name={t("versions.backTo", { revision })}
                    disabled={isChanged || back.isPending}
                    onClick={() => back.mutate(revision)}
                  />
                )}
              </div>
            </li>
          );
        })}
      </ol>
      {shown ? (
        <Dialog open wide onClose={() => show(null)} title={shown.title}>
          {"compared" in shown ? (
            <DiffView {...shown.compared} />
          ) : (
            <div className="h-[60vh] overflow-hidden rounded-md border border-line">
              <Canvas picture={pictureOf(shown.definition, i18n.language, t)} />
            </div>
          )}
        </Dialog>
      ) : null}
    </div>
  );
}
