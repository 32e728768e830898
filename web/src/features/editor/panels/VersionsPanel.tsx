/** All revisions: name, author, time, changes, publication, and rollback. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, apiRequest } from "@/api/http";
import { definition, revisions, unpublishVersion, workflow } from "@/api/queries";
import type { WorkflowEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { Dialog } from "@/components/Dialog";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useVersionsChanged, versionName } from "@/features/workflows/versionNames";
import { pictureOf } from "@/graph/model/picture";
import { Canvas } from "@/graph/render/Canvas";
import { useEditor } from "../editorContext";
import { PublishDialog } from "../PublishDialog";
import { type Compared, DiffView } from "./DiffView";
import { type Comparison, VersionRow } from "./VersionRow";

type Shown = { title: string; compared: Compared } | { title: string; definition: Compared["after"] };

export default function VersionsPanel() {
  const { t, i18n } = useTranslation();
  const { id, isChanged } = useEditor();
  const known = useQuery(revisions(id));
  const [shown, show] = useState<Shown | null>(null);
  const [publishing, publish] = useState<WorkflowEntry | null>(null);
  const open = useComparison(show);
  const back = useRollback();

  if (known.isPending) return <Loading />;
  if (known.isError) return <ErrorMessage error={known.error} onRetry={() => void known.refetch()} />;
  return (
    <div className="space-y-3">
      {open.isError || back.isError ? <ErrorMessage error={open.error ?? back.error} /> : null}
      {isChanged ? <p className="text-ink-soft">{t("versions.unsaved")}</p> : null}
      <Published />
      <ol className="divide-y divide-line rounded-md border border-line">
        {known.data.map((entry, at) => (
          <VersionRow
            key={entry.revision}
            entry={entry}
            hasEarlier={at + 1 < known.data.length}
            isBusy={back.isPending}
            onShow={(how) => open.mutate({ entry, before: known.data[at + 1], how })}
            onRestore={() => back.mutate(entry.revision)}
            onPublish={() => publish(entry)}
          />
        ))}
      </ol>
      {publishing ? <PublishDialog entry={publishing} onClose={() => publish(null)} /> : null}
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

/** The version that runs, and the way back to running the newest revision. */
function Published() {
  const { t } = useTranslation();
  const { id, saved, mayChange } = useEditor();
  const changed = useVersionsChanged(id);
  const [isLeaving, setLeaving] = useState(false);
  if (!saved.published) return null;
  const { name } = saved.published;
  return (
    <p className="flex flex-wrap items-center gap-2">
      <span className="text-done wrap-anywhere">{t("versions.publishedAs", { name })}</span>
      {mayChange ? (
        <Button className="ml-auto" onClick={() => setLeaving(true)}>
          {t("versions.unpublish")}
        </Button>
      ) : null}
      {isLeaving ? (
        <Confirm
          title={t("versions.unpublishSure", { name })}
          about={t("versions.unpublishAbout")}
          confirmLabel={t("versions.unpublish")}
          action={() => unpublishVersion(id)}
          onDone={changed}
          onClose={() => setLeaving(false)}
        />
      ) : null}
    </p>
  );
}

/** Load a revision to look at, or two to compare. */
function useComparison(show: (shown: Shown) => void) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { id, draft } = useEditor();
  const of = (revision: number) => client.fetchQuery(definition(`${id}@${revision}`));
  const textOf = async (revision: number) => (await client.fetchQuery(workflow(`${id}@${revision}`))).value.text;
  return useMutation<Shown, ApiError, { entry: WorkflowEntry; before: WorkflowEntry | undefined; how: Comparison }>({
    mutationFn: async ({ entry, before = entry, how }) => {
      const { revision } = entry;
      const version = versionName(entry, t);
      if (how === "look") return { title: t("versions.lookAt", { version }), definition: await of(revision) };
      if (how === "screen")
        return {
          title: t("versions.toScreen", { version }),
          compared: { before: await of(revision), after: draft.shown },
        };
      const from = before.revision;
      const [old, now, was, is] = await Promise.all([of(from), of(revision), textOf(from), textOf(revision)]);
      return {
        title: t("versions.between", { from: versionName(before, t), to: version }),
        compared: { before: old, after: now, texts: { before: was, after: is } },
      };
    },
    onSuccess: show,
  });
}

function useRollback() {
  const client = useQueryClient();
  const { id } = useEditor();
  return useMutation<unknown, ApiError, number>({
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
}
