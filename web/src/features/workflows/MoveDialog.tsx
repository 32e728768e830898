import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { CatalogueEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { ErrorDetail } from "@/components/ErrorDetail";
import { LabelledField } from "@/components/LabelledField";
import { folders, moveEach } from "./folders";

/** Move workflows into a folder, or out of theirs. */
export function MoveDialog(props: {
  entries: readonly CatalogueEntry[];
  onMoved: () => Promise<unknown>;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { entries } = props;
  const known = useQuery(folders());
  const [folder, setFolder] = useState(entries[0]?.folder ?? "");
  const move = useMutation({
    mutationFn: () => moveEach(entries, folder),
    onSuccess: async (failed) => {
      await props.onMoved();
      if (failed.length === 0) props.onClose();
    },
  });
  return (
    <Dialog open onClose={props.onClose} title={t("folders.moveTitle", { count: entries.length })}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          move.mutate();
        }}
      >
        <LabelledField name={t("folders.folder")} about={t("folders.moveAbout")}>
          {(its) => (
            <select {...its} value={folder} onChange={(event) => setFolder(event.target.value)}>
              <option value="">{t("folders.none")}</option>
              {(known.data ?? []).map((one) => (
                <option key={one.path} value={one.path}>
                  {one.path}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
        {move.data?.length ? (
          <div role="alert" className="rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
            <ul>
              {move.data.map(({ id, why }) => (
                <li key={id} className="wrap-anywhere">
                  <bdi>{id}</bdi> <ErrorDetail code={why.code} message={why.message} hint={why.hint} />
                </li>
              ))}
            </ul>
          </div>
        ) : null}
        <DialogActions onClose={props.onClose}>
          <Button type="submit" kind="primary" disabled={move.isPending || known.isPending}>
            {t("folders.move")}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
