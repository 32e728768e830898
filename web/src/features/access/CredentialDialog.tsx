import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import type { Secret } from "./access";
import { beginAuthorization, type CredentialType, redirectOf, setCredential, TYPES } from "./credentials";

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

type Field =
  | "name"
  | "user"
  | "password"
  | "authorizeUrl"
  | "tokenUrl"
  | "clientId"
  | "clientSecret"
  | "scopes"
  | "hosts";
const OAUTH: readonly Field[] = ["tokenUrl", "clientId", "clientSecret", "scopes"];
const FIELDS: Record<CredentialType, readonly Field[]> = {
  basic: ["user", "password"],
  "oauth2-client": OAUTH,
  "oauth2-code": ["authorizeUrl", ...OAUTH],
};
const HIDDEN: ReadonlySet<Field> = new Set(["password", "clientSecret"]);
const OPTIONAL: ReadonlySet<Field> = new Set(["scopes", "hosts"]);

/** Create or change a credential. One of the type `oauth2-code` leads to the login of the service. */
export function CredentialDialog(props: { known: Secret | null; onSet: () => Promise<void>; onClose: () => void }) {
  const { t } = useTranslation();
  const before = props.known?.credential ?? null;
  const [type, setType] = useState<CredentialType>(before?.type ?? "basic");
  const [entered, setEntered] = useState<Record<Field, string>>({
    name: props.known?.name ?? "",
    user: before?.user ?? "",
    password: "",
    authorizeUrl: before?.authorizeUrl ?? "",
    tokenUrl: before?.tokenUrl ?? "",
    clientId: before?.clientId ?? "",
    clientSecret: "",
    scopes: before?.scopes.join(" ") ?? "",
    hosts: props.known?.hosts.join(", ") ?? "",
  });
  const isLogin = type === "oauth2-code";
  const keep = useMutation({
    mutationFn: async () => {
      const { name, scopes, hosts, ...parts } = entered;
      const rule = props.known ?? { tools: [], workflows: [], groups: [] };
      const { tools, workflows, groups } = rule;
      const body = { ...parts, type, scopes: words(scopes), hosts: words(hosts), tools, workflows, groups };
      await setCredential(props.known, name, body);
      if (isLogin) window.location.assign((await beginAuthorization(name)).address);
    },
    onSuccess: async () => {
      await props.onSet();
      if (!isLogin) props.onClose();
    },
  });
  const fields: readonly Field[] = [...(props.known ? [] : (["name"] as const)), ...FIELDS[type], "hosts"];
  const needs = (field: Field) =>
    !OPTIONAL.has(field) && !(HIDDEN.has(field) && props.known !== null) && !(field === "clientSecret" && isLogin);
  const isComplete = NAME.test(entered.name) && fields.every((field) => entered[field] !== "" || !needs(field));
  return (
    <DraftDialog
      open
      onClose={props.onClose}
      title={props.known ? t("credentials.change", { name: entered.name }) : t("credentials.add")}
      about={t("credentials.about")}
    >
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          keep.mutate();
        }}
      >
        {keep.isError ? <ErrorMessage error={keep.error} /> : null}
        <LabelledField name={t("credentials.type")} about={t(`credentials.types.${type}About`)}>
          {(its) => (
            <select {...its} value={type} onChange={(event) => setType(event.target.value as CredentialType)}>
              {TYPES.map((one) => (
                <option key={one} value={one}>
                  {t(`credentials.types.${one}`)}
                </option>
              ))}
            </select>
          )}
        </LabelledField>
        {fields.map((field) => (
          <CredentialField
            key={field}
            field={field}
            value={entered[field]}
            isRequired={needs(field)}
            stays={HIDDEN.has(field) && props.known !== null}
            onChange={(value) => setEntered({ ...entered, [field]: value })}
          />
        ))}
        {isLogin && NAME.test(entered.name) ? <RedirectAddress name={entered.name} /> : null}
        <DialogActions onClose={props.onClose}>
          <Button kind="primary" type="submit" disabled={!isComplete || keep.isPending}>
            {t(isLogin ? "credentials.saveAndConnect" : "credentials.save")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}

function CredentialField(props: {
  field: Field;
  value: string;
  isRequired: boolean;
  stays: boolean;
  onChange: (value: string) => void;
}) {
  const { t } = useTranslation();
  const { field } = props;
  const wrong = field === "name" && props.value !== "" && !NAME.test(props.value) ? t("secrets.nameWrong") : undefined;
  const about = props.stays ? t("credentials.stays") : t(`credentials.fields.${field}About`, { defaultValue: "" });
  return (
    <LabelledField
      name={t(`credentials.fields.${field}`)}
      about={about || undefined}
      error={wrong}
      required={props.isRequired}
    >
      {(its) => (
        <input
          {...its}
          type={HIDDEN.has(field) ? "password" : "text"}
          autoComplete={HIDDEN.has(field) ? "new-password" : "off"}
          spellCheck={false}
          value={props.value}
          onChange={(event) => props.onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}

/** The address that the admin registers at the service. */
function RedirectAddress({ name }: { name: string }) {
  const { t } = useTranslation();
  return (
    <div>
      <p className="font-medium">{t("credentials.redirect")}</p>
      <p className="flex items-center gap-2">
        <code className="text-xs break-all">{redirectOf(name)}</code>
        <CopyButton text={redirectOf(name)} name={t("credentials.redirect")} />
      </p>
      <p className="text-xs text-ink-faint">{t("credentials.redirectAbout")}</p>
    </div>
  );
}
