import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { ErrorDetail } from "@/components/ErrorDetail";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { SuggestionInput } from "@/components/SuggestionInput";
import { type FormErrors, useFormErrors } from "@/components/useFormErrors";
import {
  type Connected,
  connect,
  EXAMPLE_ADDRESSES,
  isCompatible,
  NAME,
  type ProviderKind,
  productName,
} from "./connections";
import type { Models, Provider } from "./models";

/** The fields that the form shows, by their names in requests. */
const fieldsOf = (kind: ProviderKind, known: Provider | null): string[] => [
  ...(isCompatible(kind.kind) && !known ? ["name"] : []),
  ...(kind.needsAddress ? ["baseUrl"] : []),
  ...(kind.takesRegion ? ["region"] : []),
  "key",
  "model",
];

interface Entered {
  name: string;
  key: string;
  address: string;
  region: string;
  apiVersion: string;
  model: string;
  isDefault: boolean;
}

/** Connect a provider: key, model, test. `known` is the connected provider to change, whose key stays if the field is
 * empty; null for a new one. */
export function ConnectDialog(props: {
  kind: ProviderKind;
  known: Provider | null;
  models: Models;
  onConnected: () => Promise<void>;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { kind, known, models } = props;
  const product = productName(kind.kind, t);
  const mayDefault = models.default === null || models.defaultFrom === "app";
  const [entered, setEntered] = useState<Entered>({
    name: known?.name ?? (isCompatible(kind.kind) ? "" : kind.kind),
    key: "",
    address: known?.baseUrl ?? "",
    region: "",
    apiVersion: "",
    model: kind.suggested,
    isDefault: mayDefault && models.default === null,
  });
  const change = (changed: Partial<Entered>) => setEntered({ ...entered, ...changed });
  const saving = useMutation({
    mutationFn: (test: boolean) =>
      connect(known, entered.name, {
        kind: kind.kind,
        ...(entered.key ? { key: entered.key } : {}),
        baseUrl: entered.address,
        region: entered.region,
        apiVersion: entered.apiVersion,
        model: entered.model,
        default: entered.isDefault && entered.model !== "",
        test,
      }),
    onSuccess: async (result) => {
      if (!result.saved) return;
      await props.onConnected();
      props.onClose();
    },
  });
  const errors = useFormErrors(saving.error, fieldsOf(kind, known));
  const failed = saving.data && !saving.data.saved ? saving.data : null;
  const isComplete =
    NAME.test(entered.name) &&
    entered.model !== "" &&
    (entered.key !== "" || !kind.needsKey || known !== null) &&
    (entered.address !== "" || !kind.needsAddress);
  return (
    <DraftDialog
      open
      onClose={props.onClose}
      title={t("connections.connect", { product })}
      about={t("connections.sealed")}
    >
      <form
        ref={errors.form}
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          saving.mutate(true);
        }}
      >
        {errors.rest ? <ErrorMessage error={errors.rest} /> : null}
        {failed ? <TestFailed result={failed} /> : null}
        <ConnectionFields kind={kind} known={known} entered={entered} change={change} errors={errors} />
        {mayDefault ? (
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              checked={entered.isDefault}
              onChange={(event) => change({ isDefault: event.target.checked })}
            />
            {t("connections.useAsDefault")}
          </label>
        ) : null}
        <DialogActions onClose={props.onClose}>
          {failed ? (
            <Button disabled={saving.isPending} onClick={() => saving.mutate(false)}>
              {t("connections.saveAnyway")}
            </Button>
          ) : null}
          <Button kind="primary" type="submit" disabled={!isComplete || saving.isPending}>
            {t(saving.isPending ? "connections.testing" : "connections.testAndSave")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}

function ConnectionFields(props: {
  kind: ProviderKind;
  known: Provider | null;
  entered: Entered;
  change: (changed: Partial<Entered>) => void;
  errors: FormErrors;
}) {
  const { t } = useTranslation();
  const { kind, known, entered, change, errors } = props;
  const wrongName = entered.name !== "" && !NAME.test(entered.name) ? t("connections.nameWrong") : errors.at("name");
  const plain = (field: "name" | "address" | "region" | "apiVersion", example = "") => ({
    autoComplete: "off",
    spellCheck: false,
    placeholder: example,
    value: entered[field],
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => change({ [field]: event.target.value }),
  });
  const keyAbout = known
    ? t("connections.keyStays")
    : kind.needsKey
      ? undefined
      : t(`connections.keyOptional.${keyless(kind)}`);
  return (
    <>
      {isCompatible(kind.kind) && !known ? (
        <LabelledField name={t("connections.name")} about={t("connections.nameAbout")} error={wrongName} required>
          {(its) => <input {...its} {...plain("name", "gateway")} />}
        </LabelledField>
      ) : null}
      {kind.needsAddress ? (
        <LabelledField
          name={t("connections.address")}
          about={t("connections.addressAbout")}
          error={errors.at("baseUrl")}
          required
        >
          {(its) => (
            <input {...its} {...plain("address", EXAMPLE_ADDRESSES[kind.kind] ?? "https://llm.example.com/v1")} />
          )}
        </LabelledField>
      ) : null}
      {kind.takesRegion ? (
        <LabelledField name={t("connections.region")} error={errors.at("region")}>
          {(its) => <input {...its} {...plain("region", "eu-central-1")} />}
        </LabelledField>
      ) : null}
      {kind.kind === "azure" ? (
        <LabelledField name={t("connections.apiVersion")}>
          {(its) => <input {...its} {...plain("apiVersion", "2025-04-01-preview")} />}
        </LabelledField>
      ) : null}
      <LabelledField
        name={t("connections.key")}
        about={keyAbout}
        error={errors.at("key")}
        required={kind.needsKey && !known}
      >
        {(its) => (
          <input
            {...its}
            type="password"
            className={`${its.className} font-mono`}
            autoComplete="new-password"
            value={entered.key}
            onChange={(event) => change({ key: event.target.value })}
          />
        )}
      </LabelledField>
      <LabelledField
        name={t("connections.model")}
        about={t("connections.modelAbout")}
        error={errors.at("model")}
        required
      >
        {(its) => (
          <SuggestionInput
            {...its}
            value={entered.model}
            suggestions={kind.models.map((name) => ({ name, about: "" }))}
            onType={(model) => change({ model })}
            onChoose={(model) => change({ model })}
          />
        )}
      </LabelledField>
    </>
  );
}

const keyless = (kind: ProviderKind) => (kind.takesRegion ? "aws" : "own");

/** Why the test failed, and what to do: the server's hint, or the one for what an admin can change here. */
function TestFailed({ result }: { result: Connected }): ReactNode {
  const { t } = useTranslation();
  const failure = result.ping?.failure;
  if (!failure) return null;
  const advice = failure.code === "model-unauthorized" ? t("connections.checkKey") : failure.hint;
  return (
    <div role="alert" className="rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
      <p className="font-medium">{t("connections.testFailed")}</p>
      <ErrorDetail code={failure.code} message={failure.message} hint={advice} />
      {failure.code === "address-refused" ? <p className="mt-1 text-sm">{t("connections.restartNeeded")}</p> : null}
    </div>
  );
}
