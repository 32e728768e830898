import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { useFormErrors } from "@/components/useFormErrors";
import { MailFields } from "./MailFields";
import { type MailDraft, type MailServer, mailDraft, type Setting, saveMailServer, testMailServer } from "./settings";

const FIELDS = ["host", "port", "security", "username", "password", "sender", "recipients", "to"];

/** Enter or change the mail server. A test sends one message and saves nothing. */
export function MailDialog(props: { known: Setting; onDone: () => void; onClose: () => void }) {
  const { t } = useTranslation();
  const { known } = props;
  const [draft, setDraft] = useState(() => mailDraft(known.entered as MailServer | null));
  const [to, setTo] = useState("");
  const trying = useMutation({ mutationFn: () => testMailServer(draft, to) });
  const saving = useMutation({ mutationFn: () => saveMailServer(draft, known), onSuccess: props.onDone });
  const errors = useFormErrors(saving.error ?? trying.error, FIELDS);
  const isBusy = saving.isPending || trying.isPending;
  const isComplete = draft.host.trim() !== "" && draft.sender.trim() !== "";
  return (
    <DraftDialog open onClose={props.onClose} title={t("settings.mail.title")} about={t("settings.mail.sealed")}>
      <form
        ref={errors.form}
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          trying.reset();
          saving.mutate();
        }}
      >
        {errors.rest ? <ErrorMessage error={errors.rest} /> : null}
        <MailFields
          draft={draft}
          change={(part: Partial<MailDraft>) => setDraft({ ...draft, ...part })}
          keepsPassword={Boolean((known.entered as MailServer | null)?.password)}
          errors={errors}
        />
        <div className="rounded-md bg-sunken p-3">
          <LabelledField name={t("settings.mail.to")} error={errors.at("to")}>
            {(its) => (
              <span className="flex gap-2">
                <input
                  {...its}
                  type="email"
                  value={to}
                  placeholder="ada@example.com"
                  onChange={(event) => setTo(event.target.value)}
                />
                <Button
                  disabled={isBusy || !isComplete || !to.includes("@")}
                  onClick={() => {
                    saving.reset();
                    trying.mutate();
                  }}
                >
                  {t("settings.mail.test")}
                </Button>
              </span>
            )}
          </LabelledField>
          {trying.data ? (
            <p role="status" className={`mt-2 ${trying.data.sent ? "text-done" : "text-failed"}`}>
              {trying.data.sent ? t("settings.mail.sent") : t("settings.mail.notSent", { why: trying.data.error })}
            </p>
          ) : null}
        </div>
        <DialogActions onClose={props.onClose}>
          <Button kind="primary" type="submit" disabled={isBusy || !isComplete}>
            {t("settings.save")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}
