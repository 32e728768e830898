import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";

const PATH_MAX = 500;

/** Ask for the path of a folder: a new one, or another path for one. */
export function FolderDialog(props: {
  title: string;
  start: string;
  submitLabel: string;
  save: (path: string) => Promise<unknown>;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const [path, setPath] = useState(props.start);
  const save = useMutation({ mutationFn: () => props.save(path.trim()), onSuccess: props.onClose });
  return (
    <Dialog open onClose={props.onClose} title={props.title}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (path.trim()) save.mutate();
        }}
      >
        <LabelledField name={t("folders.path")} about={t("folders.pathAbout")} required>
          {(its) => (
            <input
              {...its}
              value={path}
              maxLength={PATH_MAX}
              autoComplete="off"
              onChange={(event) => setPath(event.target.value)}
            />
          )}
        </LabelledField>
        {save.isError ? <ErrorMessage error={save.error} /> : null}
        <DialogActions onClose={props.onClose}>
          <Button type="submit" kind="primary" disabled={!path.trim() || save.isPending}>
            {props.submitLabel}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
