/**
 * Banner for a newer revision by another user, or for stored changes of an older revision: the user can rebase, compare
 * or drop.
 */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { GitCompareArrows, GitMerge, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiResponse, apiRequest, apiResponse } from "@/api/http";
import { type DefinitionBody, definition, definitionIn, workflow } from "@/api/queries";
import type { Definition, WorkflowDetail } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { ErrorMessage } from "@/components/StatusMessage";
import { ago } from "@/components/times";
import { type Clash, type RebaseResult, rebase, typedText, withoutTypedText } from "./document/rebase";
import { olderDraft, removeOlderDraft, storeDraft } from "./document/storedDrafts";
import { useEditor } from "./editorContext";
import { DiffView } from "./panels/DiffView";
import { type Choice, TextConflict } from "./panels/TextConflict";
import { useNewerRevision } from "./useNewerRevision";

interface TakenRevision {
  fresh: ApiResponse<WorkflowDetail>;
  native: Definition;
  found: RebaseResult;
}

export function RevisionConflict({ onClone }: { onClone: () => void }) {
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const { id, saved, store, draft, isChanged } = useEditor();
  const [older, setOlder] = useState(() => olderDraft(id));
  const [clashes, setClashes] = useState<Clash[]>([]);
  const [isAsking, setAsking] = useState(false);
  const [compared, compare] = useState<{ before: Definition; after: Definition } | null>(null);
  const latest = useNewerRevision(id, saved.revision);
  const path = `/api/workflows/${encodeURIComponent(id)}`;
  const mine = older ?? { revision: saved.revision, done: draft.done };
  const onTop = older && isChanged ? [...draft.done, ...mine.done] : mine.done;
  const typed = typedText(onTop);

  /** Make the latest revision the base and rebase the changes onto it. */
  const take = useMutation<TakenRevision, Error, Choice | null>({
    mutationFn: async (choice) => {
      const fresh = choice?.theirs ?? (await apiResponse<WorkflowDetail>(path));
      const native = await client.fetchQuery(definition(`${id}@${fresh.value.revision}`));
      const base = older
        ? await client.fetchQuery(definition(`${id}@${older.revision}`)).catch(() => null)
        : draft.base;
      const found = rebase(choice?.whose === "theirs" ? withoutTypedText(onTop) : onTop, base, native);
      storeDraft(id, { revision: fresh.value.revision, done: found.done });
      return { fresh, native, found };
    },
    onSuccess: ({ fresh, native, found }) => {
      removeOlderDraft(id);
      setOlder(null);
      setAsking(false);
      setClashes(found.clashes);
      if (fresh.value.revision === saved.revision) return store.getState().restart(draft.base, found.done);
      // Update the revision first, because the stored changes are based on it.
      client.setQueryData(workflow(id).queryKey, fresh);
      client.setQueryData(definition(id).queryKey, native);
    },
  });
  const look = useMutation({
    mutationFn: async () => {
      const [before, after] = await Promise.all([
        older ? client.fetchQuery(definition(`${id}@${older.revision}`)) : draft.base,
        apiRequest<DefinitionBody>(`${path}?dialect=native`),
      ]);
      return { before, after: definitionIn(after) };
    },
    onSuccess: compare,
  });
  const drop = () => {
    removeOlderDraft(id);
    setOlder(null);
  };

  if (!latest && !older && clashes.length === 0) return null;
  return (
    <section aria-label={t("revisionConflict.label")} className="border-b border-waiting/50 bg-waiting-soft px-4 py-2">
      {latest || older ? (
        <div role="status" className="flex flex-wrap items-center gap-2">
          <TriangleAlert className="size-4 shrink-0 text-waiting" aria-hidden />
          <p className="min-w-0 flex-1 basis-64 break-words">
            {latest
              ? t("revisionConflict.saved", {
                  who: latest.author || "?",
                  revision: latest.revision,
                  when: latest.createdAt === null ? "" : ago(latest.createdAt, i18n.language),
                })
              : t("revisionConflict.older", { revision: older?.revision, count: older?.done.length ?? 0 })}
          </p>
          <Button onClick={() => look.mutate()} disabled={look.isPending}>
            <GitCompareArrows className="size-4" aria-hidden /> {t("revisionConflict.look")}
          </Button>
          <Button
            kind="primary"
            onClick={() => (typed === null ? take.mutate(null) : setAsking(true))}
            disabled={take.isPending}
          >
            <GitMerge className="size-4" aria-hidden />{" "}
            {isChanged || older ? t("revisionConflict.onTop") : t("revisionConflict.take")}
          </Button>
          {latest && isChanged ? <Button onClick={onClone}>{t("revisionConflict.clone")}</Button> : null}
          {!latest && older ? <Button onClick={drop}>{t("revisionConflict.drop")}</Button> : null}
        </div>
      ) : null}
      {clashes.length > 0 ? (
        <div role="status">
          <p className="font-medium">{t("revisionConflict.clashes", { count: clashes.length })}</p>
          <ul className="list-disc pl-5">
            {clashes.map((one) => (
              <li key={`${one.why} ${one.about}`}>
                <bdi className="font-mono text-xs">{one.about}</bdi> {t(`revisionConflict.why.${one.why}`)}
              </li>
            ))}
          </ul>
          <Button className="mt-1" onClick={() => setClashes([])}>
            {t("revisionConflict.seen")}
          </Button>
        </div>
      ) : null}
      {isAsking && typed !== null ? (
        <TextConflict
          path={path}
          mine={typed}
          isBusy={take.isPending}
          onChoose={take.mutate}
          onClose={() => setAsking(false)}
        />
      ) : null}
      {take.isError || look.isError ? <ErrorMessage error={take.error ?? look.error} /> : null}
      {compared ? (
        <Dialog open wide onClose={() => compare(null)} title={t("revisionConflict.what")}>
          <DiffView before={compared.before} after={compared.after} />
        </Dialog>
      ) : null}
    </section>
  );
}
