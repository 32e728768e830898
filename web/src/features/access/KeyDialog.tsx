import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { login, me } from "@/api/queries";
import type { Schemas } from "@/api/views";
import { Button } from "@/components/Button";
import { CopyButton } from "@/components/CopyButton";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { setCreatingFirstKey } from "@/components/firstKeyState";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { makeKey, type NewKey, namesIn, ROLES } from "./access";

/** Create a key and show it once. The first key of a server gets the admin role, because only admins can create
 * keys. */
export function KeyDialog(props: { isFirst: boolean; onMade: () => void; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  useEffect(() => () => setCreatingFirstKey(false), []);
  const make = useMutation<Schemas["NewKeyView"], ApiError, NewKey>({
    mutationFn: async (key) => {
      if (!props.isFirst) return makeKey(key);
      // With the first key, the server starts to require a login. Log in with the new key, and show it in any case.
      setCreatingFirstKey(true);
      const made = await makeKey(key);
      await login(made.key).then(
        (who) => client.setQueryData(me().queryKey, who),
        () => undefined,
      );
      return made;
    },
    onSuccess: props.onMade,
  });
  return (
    <Dialog
      open
      onClose={props.onClose}
      title={make.isSuccess ? t("keys.isMade", { name: make.data.name }) : t("keys.make")}
      about={make.isSuccess ? t("keys.shownOnce") : props.isFirst ? t("keys.first") : t("keys.makeAbout")}
    >
      {make.isSuccess ? (
        <>
          <div className="flex items-center gap-2 rounded-md border border-line-strong bg-sunken p-2">
            <code className="min-w-0 flex-1 font-mono break-all select-all">{make.data.key}</code>
            <CopyButton text={make.data.key} name={t("keys.theKey")} />
          </div>
          <DialogActions>
            <Button kind="primary" onClick={props.onClose}>
              {t("keys.kept")}
            </Button>
          </DialogActions>
        </>
      ) : (
        <>
          {make.isError ? (
            <div className="mb-3">
              <ErrorMessage error={make.error} />
            </div>
          ) : null}
          <KeyForm
            role={props.isFirst ? "admin" : "operator"}
            isBusy={make.isPending}
            onMake={make.mutate}
            onClose={props.onClose}
          />
        </>
      )}
    </Dialog>
  );
}

function KeyForm(props: { role: NewKey["role"]; isBusy: boolean; onMake: (key: NewKey) => void; onClose: () => void }) {
  const { t } = useTranslation();
  const [name, setName] = useState("");
  const [role, setRole] = useState(props.role);
  const [groups, setGroups] = useState("");
  const [days, setDays] = useState("");
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        props.onMake({
          name: name.trim(),
          role,
          groups: namesIn(groups),
          days: days.trim() === "" ? null : Number(days),
        });
      }}
    >
      <LabelledField name={t("keys.name")} about={t("keys.nameAbout")} required>
        {(its) => (
          <input
            {...its}
            maxLength={100}
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </LabelledField>
      <LabelledField name={t("keys.role")} about={t(`role.${role ?? "operator"}About`)}>
        {(its) => (
          <select {...its} value={role} onChange={(event) => setRole(event.target.value as NewKey["role"])}>
            {ROLES.map((one) => (
              <option key={one} value={one}>
                {t(`role.${one}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      <LabelledField name={t("keys.groups")} about={t("keys.groupsAbout")}>
        {(its) => (
          <input {...its} autoComplete="off" value={groups} onChange={(event) => setGroups(event.target.value)} />
        )}
      </LabelledField>
      <LabelledField name={t("keys.days")} about={t("keys.daysAbout")}>
        {(its) => (
          <input
            {...its}
            type="number"
            min="1"
            max="36500"
            value={days}
            onChange={(event) => setDays(event.target.value)}
          />
        )}
      </LabelledField>
      <DialogActions onClose={props.onClose}>
        <Button kind="primary" type="submit" disabled={!name.trim() || props.isBusy}>
          {t("keys.make")}
        </Button>
      </DialogActions>
    </form>
  );
}
