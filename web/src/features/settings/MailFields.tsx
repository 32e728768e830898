import { useTranslation } from "react-i18next";
import { LabelledField } from "@/components/LabelledField";
import type { FormErrors } from "@/components/useFormErrors";
import { type MailDraft, PORTS, SECURITIES } from "./settings";

interface Fields {
  draft: MailDraft;
  change: (part: Partial<MailDraft>) => void;
  errors: FormErrors;
  /** Whether an empty field leaves the stored password as it is. */
  keepsPassword: boolean;
}

export function MailFields(props: Fields) {
  const { t } = useTranslation();
  const { draft, change } = props;
  return (
    <>
      <Server {...props} />
      <TextField {...props} name="username" about={t("settings.mail.usernameAbout")} />
      {draft.username.trim() ? (
        <TextField
          {...props}
          name="password"
          about={props.keepsPassword ? t("settings.mail.passwordStays") : undefined}
          required={!props.keepsPassword}
        />
      ) : null}
      <TextField {...props} name="sender" example="Desk <desk@example.com>" required />
      <LabelledField
        name={t("settings.mail.recipients")}
        about={t("settings.mail.recipientsAbout")}
        error={props.errors.at("recipients")}
      >
        {(its) => (
          <textarea
            {...its}
            rows={2}
            value={draft.recipients}
            onChange={(event) => change({ recipients: event.target.value })}
          />
        )}
      </LabelledField>
      <label className="flex min-h-6 items-center gap-2">
        <input
          type="checkbox"
          checked={draft.requiresApproval}
          onChange={(event) => change({ requiresApproval: event.target.checked })}
        />
        {t("settings.mail.requiresApproval")}
      </label>
    </>
  );
}

/** Host, security and port. */
function Server(props: Fields) {
  const { t } = useTranslation();
  const { draft, change, errors } = props;
  return (
    <>
      <TextField {...props} name="host" example="smtp.example.com" required />
      <div className="grid gap-3 sm:grid-cols-2">
        <LabelledField
          name={t("settings.mail.security")}
          about={draft.security === "none" ? t("settings.mail.unencrypted") : undefined}
          error={errors.at("security")}
        >
          {(its) => (
            <select
              {...its}
              value={draft.security}
              onChange={(event) =>
                change({ security: SECURITIES.find((one) => one === event.target.value) ?? "starttls" })
              }
            >
              {SECURITIES.map((one) => (
                <option key={one} value={one}>
                  {t(`settings.mail.securities.${one}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
        <LabelledField name={t("settings.mail.port")} error={errors.at("port")}>
          {(its) => (
            <input
              {...its}
              inputMode="numeric"
              value={draft.port}
              placeholder={String(PORTS[draft.security])}
              onChange={(event) => change({ port: event.target.value.replaceAll(/\D/g, "").slice(0, 5) })}
            />
          )}
        </LabelledField>
      </div>
    </>
  );
}

function TextField(
  props: Fields & {
    name: "host" | "username" | "password" | "sender";
    about?: string | undefined;
    example?: string;
    required?: boolean;
  },
) {
  const { t } = useTranslation();
  const { name } = props;
  return (
    <LabelledField
      name={t(`settings.mail.${name}`)}
      about={props.about}
      error={props.errors.at(name)}
      required={props.required === true}
    >
      {(its) => (
        <input
          {...its}
          type={name === "password" ? "password" : "text"}
          autoComplete={name === "password" ? "new-password" : "off"}
          spellCheck={false}
          placeholder={props.example}
          value={props.draft[name]}
          onChange={(event) => props.change({ [name]: event.target.value })}
        />
      )}
    </LabelledField>
  );
}
