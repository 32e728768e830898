import { useTranslation } from "react-i18next";
import { LabelledField } from "@/components/LabelledField";
import type { FormErrors } from "@/components/useFormErrors";
import { secretNameOf } from "./generatedSecret";
import { SIGNATURES, type WebhookDraft } from "./webhookDraft";

/** How calls of a webhook are signed, and with which secret. */
export function SecretFields(props: {
  draft: WebhookDraft;
  change: (part: Partial<WebhookDraft>) => void;
  /** Only admins store secrets. */
  mayGenerate: boolean;
  /** Whether the webhook has a secret already, which an empty field leaves as it is. */
  isKept: boolean;
  errors: FormErrors;
}) {
  const { t } = useTranslation();
  const { draft, change } = props;
  return (
    <>
      <LabelledField name={t("webhooks.signatureOf")} about={t(`webhooks.signatures.${draft.signature}About`)}>
        {(its) => (
          <select
            {...its}
            value={draft.signature}
            onChange={(event) =>
              change({ signature: SIGNATURES.find((one) => one === event.target.value) ?? "standard" })
            }
          >
            {SIGNATURES.map((one) => (
              <option key={one} value={one}>
                {t(`webhooks.signatures.${one}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      {draft.signature !== "none" && props.mayGenerate ? (
        <label className="flex min-h-6 items-center gap-2">
          <input
            type="checkbox"
            checked={draft.generates}
            onChange={(event) => change({ generates: event.target.checked })}
          />
          {t("webhooks.generate", { name: secretNameOf(draft.path) })}
        </label>
      ) : null}
      {draft.signature === "none" || draft.generates ? null : (
        <LabelledField
          name={t("webhooks.secret")}
          about={t("webhooks.secretAbout")}
          error={props.errors.at("secret")}
          required={!props.isKept}
        >
          {(its) => (
            <input
              {...its}
              value={draft.secret}
              placeholder="SHOP"
              autoComplete="off"
              onChange={(event) => change({ secret: event.target.value.trim() })}
            />
          )}
        </LabelledField>
      )}
    </>
  );
}
