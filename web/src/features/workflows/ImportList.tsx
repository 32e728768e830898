import { useMutation, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, CircleX, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { ErrorMessage, ProblemList } from "@/components/StatusMessage";
import { canSave, type Document, saveDocument, sharedIds } from "./documents";

/** Several documents with the problems, the target id and the result of each. */
export function ImportList(props: { documents: readonly Document[]; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [documents, setDocuments] = useState(props.documents);
  const [withDrafts, setWithDrafts] = useState(false);
  const left = documents.filter((one) => canSave(one, withDrafts));
  const hasDrafts = documents.some((one) => canSave(one, true) && !canSave(one, false));
  const shared = sharedIds(documents);
  const save = useMutation({
    mutationFn: async () => {
      for (const one of left) {
        const next = await saveDocument(one);
        setDocuments((before) => before.map((other) => (other.name === one.name && other === one ? next : other)));
      }
      await client.invalidateQueries({ queryKey: ["workflows"] });
    },
  });
  return (
    <>
      <ul className="divide-y divide-line rounded-lg border border-line">
        {documents.map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: file names can repeat, and the list does not change
          <DocumentRow key={at} document={one} />
        ))}
      </ul>
      {shared.length > 0 ? <p className="mt-2 text-waiting">{t("import.shared", { ids: shared.join(", ") })}</p> : null}
      {hasDrafts ? (
        <label className="mt-2 inline-flex min-h-6 items-center gap-2">
          <input
            type="checkbox"
            className="size-4"
            checked={withDrafts}
            onChange={(event) => setWithDrafts(event.target.checked)}
          />
          {t("import.withDrafts")}
        </label>
      ) : null}
      {left.length > 0 ? (
        <DialogActions onClose={props.onClose}>
          <Button kind="primary" disabled={save.isPending} onClick={() => save.mutate()}>
            {t("import.saveMany", { count: left.length })}
          </Button>
        </DialogActions>
      ) : (
        <DialogActions>
          <Button onClick={props.onClose}>{t("dialog.close")}</Button>
        </DialogActions>
      )}
    </>
  );
}

function DocumentRow({ document }: { document: Document }) {
  const { t } = useTranslation();
  const { checked, saved, failed } = document;
  const Icon = saved ? CircleCheck : checked?.ok ? CircleCheck : checked?.id ? TriangleAlert : CircleX;
  const ink = saved || checked?.ok ? "text-done" : checked?.id ? "text-waiting" : "text-failed";
  return (
    <li className="flex gap-3 px-3 py-2.5">
      <Icon className={`mt-0.5 size-4 shrink-0 ${ink}`} aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="line-clamp-2 font-medium wrap-anywhere">
          <bdi>{document.name}</bdi>
        </p>
        <p className="text-ink-soft wrap-anywhere" aria-live="polite">
          {saved
            ? t("import.done", { id: saved.id, revision: saved.revision })
            : checked?.id
              ? t(checked.revision ? "import.becomes" : "import.fresh", {
                  id: checked.id,
                  revision: (checked.revision ?? 0) + 1,
                  dialect: t(`dialect.${checked.dialect}`, checked.dialect ?? ""),
                })
              : checked
                ? t("import.unread")
                : null}
        </p>
        {failed ? <ErrorMessage error={failed} /> : null}
        {checked && checked.problems.length > 0 && !saved ? (
          <details className="mt-1">
            <summary className="min-h-6 cursor-pointer text-ink-soft">
              {t("import.problems", { count: checked.problems.length })}
            </summary>
            <ProblemList problems={checked.problems} />
          </details>
        ) : null}
      </div>
    </li>
  );
}
