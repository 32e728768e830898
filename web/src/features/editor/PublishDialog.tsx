import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { publishVersion } from "@/api/queries";
import type { WorkflowEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { useVersionsChanged } from "../workflows/versionNames";

const NAME_MAX = 100;
const NOTE_MAX = 2_000;

/** Name a revision and let it run by id. */
export function PublishDialog({ entry, onClose }: { entry: WorkflowEntry; onClose: () => void }) {
  const { t } = useTranslation();
  const { id, revision } = entry;
  const [name, setName] = useState(entry.label?.name ?? "");
  const [note, setNote] = useState(entry.label?.note ?? "");
  const changed = useVersionsChanged(id);
  const publish = useMutation<unknown, ApiError>({
    mutationFn: () => publishVersion(id, { name: name.trim(), note, revision }),
    onSuccess: async () => {
      await changed();
      onClose();
    },
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("versions.publishOf", { version: t("workflows.revision", { revision }) })}
      about={t("versions.publishAbout")}
    >
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) publish.mutate();
        }}
      >
        <LabelledField name={t("versions.name")} required>
          {(its) => (
            <input
              {...its}
              value={name}
              maxLength={NAME_MAX}
              autoComplete="off"
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </LabelledField>
        <LabelledField name={t("versions.note")}>
          {(its) => (
            <textarea
              {...its}
              rows={3}
              value={note}
              maxLength={NOTE_MAX}
              onChange={(event) => setNote(event.target.value)}
            />
          )}
        </LabelledField>
        {publish.isError ? <ErrorMessage error={publish.error} /> : null}
        <DialogActions onClose={onClose}>
          <Button type="submit" kind="primary" disabled={!name.trim() || publish.isPending}>
            {t("versions.publish")}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
