import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { ErrorMessage } from "@/components/StatusMessage";
import { useFormErrors } from "@/components/useFormErrors";
import { RetentionFields } from "./RetentionFields";
import { LanguageField, VariablesField } from "./SettingFields";
import { changeSetting, isEntered, resetSetting, retentionDraft, retentionOf, type Setting } from "./settings";

/** Change one setting that takes effect at once. */
export function SettingDialog(props: { known: Setting; onDone: () => void; onClose: () => void }) {
  const { t } = useTranslation();
  const { known } = props;
  const begin = known.name === "variables" ? (known.entered ?? {}) : (known.entered ?? known.value);
  const [value, setValue] = useState<Json>(begin as Json);
  const saving = useMutation({ mutationFn: () => changeSetting(known, value), onSuccess: props.onDone });
  const resetting = useMutation({ mutationFn: () => resetSetting(known), onSuccess: props.onDone });
  const errors = useFormErrors(saving.error ?? resetting.error, ["value"]);
  const isBusy = saving.isPending || resetting.isPending;
  return (
    <DraftDialog
      open
      onClose={props.onClose}
      title={t("settings.changeNamed", { name: known.name })}
      about={t(`settings.forms.${known.name}`)}
    >
      <form
        ref={errors.form}
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          resetting.reset();
          saving.mutate();
        }}
      >
        {errors.rest ? <ErrorMessage error={errors.rest} /> : null}
        <SettingFields name={known.name} value={value} change={setValue} error={errors.at("value")} />
        <DialogActions onClose={props.onClose}>
          {isEntered(known) ? (
            <Button
              disabled={isBusy}
              onClick={() => {
                saving.reset();
                resetting.mutate();
              }}
            >
              {t("settings.reset")}
            </Button>
          ) : null}
          <Button kind="primary" type="submit" disabled={isBusy}>
            {t("settings.save")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}

function SettingFields(props: { name: string; value: Json; change: (value: Json) => void; error: ReactNode }) {
  const { t } = useTranslation();
  const { name, value, change, error } = props;
  const [retention, setRetention] = useState(() => retentionDraft(value));
  if (name === "language") return <LanguageField value={String(value)} change={change} error={error} />;
  if (name === "variables") return <VariablesField value={value} change={change} error={error} />;
  if (name === "retention")
    return (
      <RetentionFields
        draft={retention}
        error={error}
        change={(draft) => {
          setRetention(draft);
          change(retentionOf(draft, value));
        }}
      />
    );
  return (
    <label className="flex min-h-6 items-center gap-2">
      <input type="checkbox" checked={value === true} onChange={(event) => change(event.target.checked)} />
      {t("settings.mail.agents")}
    </label>
  );
}
