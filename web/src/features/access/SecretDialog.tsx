import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { RULE_FIELDS, type Secret, type SecretRule, setSecret } from "./access";

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
const CHARS_MIN = 8;

const words = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** Set the value and the rule of a secret. `known` is the secret to change, whose value stays if the field is empty;
 * null for a new one. */
export function SecretDialog(props: { known: Secret | null; onSet: () => Promise<void>; onClose: () => void }) {
  const { t } = useTranslation();
  const [name, setName] = useState(props.known?.name ?? "");
  const [value, setValue] = useState("");
  const [rule, setRule] = useState<Record<keyof SecretRule, string>>({
    hosts: props.known?.hosts.join(", ") ?? "",
    tools: props.known?.tools.join(", ") ?? "",
    workflows: props.known?.workflows.join(", ") ?? "",
    groups: props.known?.groups.join(", ") ?? "",
  });
  const keep = useMutation({
    mutationFn: () =>
      setSecret(props.known, name, value, {
        hosts: words(rule.hosts),
        tools: words(rule.tools),
        workflows: words(rule.workflows),
        groups: words(rule.groups),
      }),
    // Refetch the list first, so that the next action uses the new ETag.
    onSuccess: async () => {
      await props.onSet();
      props.onClose();
    },
  });
  const wrongName = name !== "" && !NAME.test(name) ? t("secrets.nameWrong") : undefined;
  const wrongValue = value !== "" && value.length < CHARS_MIN ? t("secrets.valueWrong", { min: CHARS_MIN }) : undefined;
  return (
    <DraftDialog
      open
      onClose={props.onClose}
      title={props.known ? t("secrets.replaceNamed", { name }) : t("secrets.add")}
      about={t("secrets.setAbout")}
    >
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          keep.mutate();
        }}
      >
        {keep.isError ? <ErrorMessage error={keep.error} /> : null}
        {props.known ? null : (
          <LabelledField name={t("secrets.name")} about={t("secrets.nameAbout")} error={wrongName} required>
            {(its) => (
              <input
                {...its}
                className={`${its.className} font-mono`}
                autoComplete="off"
                spellCheck={false}
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </LabelledField>
        )}
        <LabelledField
          name={t("secrets.value")}
          about={props.known ? t("secrets.valueStays") : t("secrets.valueAbout")}
          error={wrongValue}
          required={props.known === null}
        >
          {(its) => (
            <input
              {...its}
              type="password"
              className={`${its.className} font-mono`}
              autoComplete="new-password"
              value={value}
              onChange={(event) => setValue(event.target.value)}
            />
          )}
        </LabelledField>
        {RULE_FIELDS.map((place) => (
          <LabelledField key={place} name={t(`secrets.rule.${place}`)} about={t(`secrets.rule.${place}About`)}>
            {(its) => (
              <input
                {...its}
                className={`${its.className} font-mono`}
                autoComplete="off"
                spellCheck={false}
                value={rule[place]}
                onChange={(event) => setRule({ ...rule, [place]: event.target.value })}
              />
            )}
          </LabelledField>
        ))}
        <DialogActions onClose={props.onClose}>
          <Button
            kind="primary"
            type="submit"
            disabled={
              !NAME.test(name) || (value === "" ? props.known === null : value.length < CHARS_MIN) || keep.isPending
            }
          >
            {t("secrets.set")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}
