import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { clone } from "@/api/queries";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { BUILT_IN_PREFIX } from "../workflows/ids";

/** Clone the workflow under another id and open the copy. */
export function CloneDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [as, setAs] = useState(id.startsWith(BUILT_IN_PREFIX) ? `my-${id.slice(BUILT_IN_PREFIX.length)}` : `${id}-2`);
  const copy = useMutation<{ id: string }, ApiError>({
    mutationFn: () => clone(id, as.trim()),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: ["workflows"] });
      onClose();
      await navigate({ to: "/workflows/$id", params: { id: made.id } });
    },
  });
  return (
    <Dialog open onClose={onClose} title={t("editor.clone")} about={t("editor.cloneAbout")}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          copy.mutate();
        }}
      >
        <LabelledField name={t("editor.cloneAs")} required>
          {(its) => (
            <input
              {...its}
              value={as}
              maxLength={200}
              spellCheck={false}
              autoComplete="off"
              onChange={(event) => setAs(event.target.value)}
              className={`${its.className} font-mono`}
            />
          )}
        </LabelledField>
        {copy.isError ? <ErrorMessage error={copy.error} /> : null}
        <DialogActions onClose={onClose}>
          <Button type="submit" kind="primary" disabled={!as.trim() || copy.isPending}>
            {t("editor.clone")}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
