import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { type FormErrors, useFormErrors } from "@/components/useFormErrors";
import { useHasRole } from "@/components/useHasRole";
import { WorkflowPicker } from "@/components/WorkflowPicker";
import { hasTwice, InputFields } from "./InputFields";
import { SecretFields } from "./SecretFields";
import {
  draftOfWebhook,
  fieldInTriggers,
  newWebhook,
  type ReadWebhook,
  type SavedWebhook,
  saveWebhook,
  type WebhookDraft,
} from "./webhookDraft";

/** Add a webhook to a workflow, or change one. Saves the document of the workflow. */
export function WebhookForm(props: {
  /** null: a new webhook. */
  known: ReadWebhook | null;
  onSaved: (draft: WebhookDraft, saved: SavedWebhook) => Promise<void>;
  onClose: () => void;
  /** More buttons. */
  children?: ReactNode;
}) {
  const { t } = useTranslation();
  const isAdmin = useHasRole("admin");
  const [known] = useState(props.known); // Not a version that was read again later: the fields began with this one.
  const [draft, setDraft] = useState(() => (known ? draftOfWebhook(known) : newWebhook(isAdmin)));
  const change = (part: Partial<WebhookDraft>) => setDraft((before) => ({ ...before, ...part }));
  const saving = useMutation({
    mutationFn: () => saveWebhook(draft, known),
    onSuccess: (saved) => props.onSaved(draft, saved),
  });
  const errors = useFormErrors(saving.error, fieldsOf(draft), fieldInTriggers(known));
  return (
    <DraftDialog
      open
      onClose={props.onClose}
      title={known ? t("webhooks.changeTitle", { path: known.webhook.path }) : t("webhooks.new")}
    >
      <form
        ref={errors.form}
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          saving.mutate();
        }}
      >
        {errors.rest ? <ErrorMessage error={errors.rest} /> : null}
        <CallFields draft={draft} change={change} isNew={known === null} errors={errors} />
        <SecretFields
          draft={draft}
          change={change}
          mayGenerate={isAdmin}
          isKept={known?.webhook.signed ?? false}
          errors={errors}
        />
        <LabelledField name={t("webhooks.match")} about={t("webhooks.matchAbout")} error={errors.at("match")}>
          {(its) => (
            <input
              {...its}
              value={draft.match}
              placeholder="event.kind == 'order'"
              onChange={(event) => change({ match: event.target.value })}
            />
          )}
        </LabelledField>
        <DialogActions onClose={props.onClose}>
          {props.children}
          <Button kind="primary" type="submit" disabled={saving.isPending || !draft.workflow || hasTwice(draft.inputs)}>
            {t("webhooks.save")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}

/** The fields that the form shows. */
const fieldsOf = (draft: WebhookDraft): string[] => [
  "path",
  "match",
  ...(draft.publishes ? ["event"] : draft.inputs.map(({ name }) => `inputs/${name.trim()}`)),
  ...(draft.signature === "none" || draft.generates ? [] : ["secret"]),
];

/** The workflow, the path, and what a call does. */
function CallFields(props: {
  draft: WebhookDraft;
  change: (part: Partial<WebhookDraft>) => void;
  isNew: boolean;
  errors: FormErrors;
}) {
  const { t } = useTranslation();
  const { draft, change, errors } = props;
  return (
    <>
      {props.isNew ? (
        <LabelledField name={t("webhooks.workflow")} required>
          {(its) => (
            <WorkflowPicker
              {...its}
              value={draft.workflow}
              onChange={(workflow) => change({ workflow, path: draft.path || workflow })}
            />
          )}
        </LabelledField>
      ) : null}
      <LabelledField name={t("webhooks.path")} about={t("webhooks.pathAbout")} error={errors.at("path")} required>
        {(its) => (
          <input
            {...its}
            value={draft.path}
            placeholder="shop/orders"
            autoComplete="off"
            onChange={(event) => change({ path: event.target.value })}
          />
        )}
      </LabelledField>
      <LabelledField name={t("webhooks.does")}>
        {(its) => (
          <select
            {...its}
            value={draft.publishes ? "event" : "start"}
            onChange={(event) => change({ publishes: event.target.value === "event" })}
          >
            <option value="start">{t("webhooks.doesStart")}</option>
            <option value="event">{t("webhooks.doesPublish")}</option>
          </select>
        )}
      </LabelledField>
      {draft.publishes ? (
        <LabelledField name={t("webhooks.event")} about={t("webhooks.eventAbout")} error={errors.at("event")} required>
          {(its) => <input {...its} value={draft.event} onChange={(event) => change({ event: event.target.value })} />}
        </LabelledField>
      ) : (
        <InputFields inputs={draft.inputs} change={(inputs) => change({ inputs })} errors={errors} />
      )}
    </>
  );
}
