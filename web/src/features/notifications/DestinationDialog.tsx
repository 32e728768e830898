import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { type FormErrors, useFormErrors } from "@/components/useFormErrors";
import {
  type Address,
  type DestinationDraft,
  destinationBody,
  draftOfDestination,
  EVENTS,
  FORMATS,
  saveDestination,
  testDestination,
} from "./notifications";

const PLACEHOLDERS = {
  json: "https://example.com/hook",
  slack: "https://hooks.slack.com/services/…",
  teams: "https://….webhook.office.com/…",
  mail: "",
} as const;

/** Add or change a destination of notices. A test sends one message and saves nothing. */
export function DestinationDialog(props: { known: Address | null; onDone: () => void; onClose: () => void }) {
  const { t } = useTranslation();
  const { known } = props;
  const [draft, setDraft] = useState(() => draftOfDestination(known));
  const change = (part: Partial<DestinationDraft>) => setDraft({ ...draft, ...part });
  const trying = useMutation({ mutationFn: () => testDestination(draft.name, destinationBody(draft)) });
  const saving = useMutation({
    mutationFn: () => saveDestination(draft.name, destinationBody(draft), known),
    onSuccess: props.onDone,
  });
  const errors = useFormErrors(saving.error ?? trying.error, fieldsOf(draft, known));
  const isBusy = saving.isPending || trying.isPending;
  return (
    <Dialog
      open
      onClose={props.onClose}
      title={t(known ? "notifications.changeNamed" : "notifications.add", { name: known?.name })}
    >
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
        <DestinationFields draft={draft} change={change} known={known} errors={errors} />
        {trying.data ? (
          <p role="status" className={trying.data.sent ? "text-done" : "text-failed"}>
            {trying.data.sent ? t("notifications.testSent") : t("notifications.testFailed", { why: trying.data.error })}
          </p>
        ) : null}
        <DialogActions onClose={props.onClose}>
          <Button
            disabled={isBusy || !draft.name}
            onClick={() => {
              saving.reset();
              trying.mutate();
            }}
          >
            {t("notifications.sendTest")}
          </Button>
          <Button kind="primary" type="submit" disabled={isBusy}>
            {t("notifications.save")}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

type TextName = "name" | "url" | "key" | "recipients" | "workflows";

/** The fields that the form shows. */
function fieldsOf(draft: DestinationDraft, known: Address | null): string[] {
  const isMail = draft.format === "mail";
  const byFormat = isMail ? ["recipients", "answerLinks"] : draft.format === "json" ? ["url", "key"] : ["url"];
  return [...(known ? [] : ["name"]), "format", ...byFormat, "events", "workflows"];
}

function DestinationFields(props: {
  draft: DestinationDraft;
  change: (part: Partial<DestinationDraft>) => void;
  known: Address | null;
  errors: FormErrors;
}) {
  const { t } = useTranslation();
  const { draft, change, known, errors } = props;
  const text = (name: TextName, about: string, more: { required?: boolean; placeholder?: string; lines?: number }) => (
    <TextField
      name={t(`notifications.fields.${name}`)}
      about={about}
      error={errors.at(name)}
      value={draft[name]}
      isSecret={name === "key"}
      onChange={(value) => change({ [name]: value })}
      {...more}
    />
  );
  return (
    <>
      {known ? null : text("name", t("notifications.nameAbout"), { required: true, placeholder: "alerts" })}
      <LabelledField name={t("notifications.format")} error={errors.at("format")}>
        {(its) => (
          <select
            {...its}
            value={draft.format}
            onChange={(event) => change({ format: FORMATS.find((one) => one === event.target.value) ?? "json" })}
          >
            {FORMATS.map((one) => (
              <option key={one} value={one}>
                {t(`notifications.formats.${one}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      {draft.format === "mail"
        ? text("recipients", t("notifications.recipientsAbout"), {
            required: true,
            placeholder: "ada <ada@example.com>",
            lines: 2,
          })
        : text("url", t(known ? "notifications.urlStored" : "notifications.urlAbout"), {
            required: !known,
            placeholder: known?.url || PLACEHOLDERS[draft.format],
          })}
      {draft.format === "json" ? text("key", t("notifications.keyAbout"), {}) : null}
      <fieldset>
        <legend className="mb-0.5 font-medium">{t("notifications.events")}</legend>
        {EVENTS.map((event) => (
          <Check
            key={event}
            isOn={draft.events.includes(event)}
            onChange={(isOn) =>
              change({ events: EVENTS.filter((one) => (one === event ? isOn : draft.events.includes(one))) })
            }
          >
            {t(`notifications.kinds.${event}`)}
          </Check>
        ))}
        <CheckError>{errors.at("events")}</CheckError>
      </fieldset>
      {text("workflows", t("notifications.workflowsAbout"), { lines: 2 })}
      {draft.format === "mail" ? (
        <Check isOn={draft.answerLinks} onChange={(answerLinks) => change({ answerLinks })}>
          {t("notifications.answerLinksField")}
        </Check>
      ) : null}
      <CheckError>{errors.at("answerLinks")}</CheckError>
    </>
  );
}

/** The error of check boxes. */
function CheckError({ children }: { children: ReactNode }) {
  return children ? (
    <div role="alert" className="text-sm text-failed">
      {children}
    </div>
  ) : null;
}

function TextField(props: {
  name: string;
  about: string;
  error: ReactNode;
  value: string;
  isSecret: boolean;
  required?: boolean;
  placeholder?: string;
  lines?: number;
  onChange: (value: string) => void;
}) {
  return (
    <LabelledField name={props.name} about={props.about} error={props.error} required={props.required === true}>
      {(its) => {
        const shared = {
          ...its,
          placeholder: props.placeholder,
          value: props.value,
          onChange: (event: { target: { value: string } }) => props.onChange(event.target.value),
        };
        if (props.lines) return <textarea {...shared} rows={props.lines} />;
        return <input {...shared} type={props.isSecret ? "password" : "text"} autoComplete="off" />;
      }}
    </LabelledField>
  );
}

function Check(props: { isOn: boolean; onChange: (isOn: boolean) => void; children: ReactNode }) {
  return (
    <label className="flex min-h-6 items-center gap-2">
      <input type="checkbox" checked={props.isOn} onChange={(event) => props.onChange(event.target.checked)} />
      {props.children}
    </label>
  );
}
