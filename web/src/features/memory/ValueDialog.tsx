import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { DescriptionList } from "@/components/DescriptionList";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { JsonField, jsonIn } from "@/components/JsonField";
import { JsonTree } from "@/components/JsonTree";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { ago, moment } from "@/components/times";
import { useHasRole } from "@/components/useHasRole";
import { brief } from "@/values/changes";
import { History } from "./History";
import { type Change, forget, history, type OwnerKey, putBack, remember, type Value } from "./memory";
import { Writer } from "./Writer";

const TTLS = [0, 3_600, 86_400, 604_800, 2_592_000] as const;

/** View and correct one value; without a value: add a new one. */
export function ValueDialog(props: { owner: OwnerKey; value: Value | null; onClose: () => void }) {
  const { t } = useTranslation();
  const [editing, setEditing] = useState(props.value === null);
  const [forgetting, setForgetting] = useState(false);
  const [back, setBack] = useState<Change | null>(null);
  const client = useQueryClient();
  const one = props.value;
  if (one && forgetting)
    return (
      <Confirm
        title={t("memory.forgetTitle", { key: one.key })}
        about={t("memory.forgetAbout")}
        confirmLabel={t("memory.forget")}
        action={() => forget(props.owner, one.namespace, one.key)}
        onDone={() => client.invalidateQueries({ queryKey: ["memory"] })}
        onClose={props.onClose}
      />
    );
  if (one && back)
    return (
      <Confirm
        title={t("memory.putBackTitle", { key: one.key })}
        about={t("memory.putBackAbout", { value: brief(back.value as Json) })}
        confirmLabel={t("memory.putBack")}
        isHarmless
        action={() => putBack(props.owner, one.namespace, one.key, back.number)}
        onDone={() => client.invalidateQueries({ queryKey: ["memory"] })}
        onClose={props.onClose}
      />
    );
  return (
    <DraftDialog open wide onClose={props.onClose} title={one ? one.key : t("memory.new")}>
      {editing ? (
        <EditValue {...props} />
      ) : one ? (
        <ViewValue
          owner={props.owner}
          value={one}
          onEdit={() => setEditing(true)}
          onForget={() => setForgetting(true)}
          onPutBack={setBack}
        />
      ) : null}
    </DraftDialog>
  );
}

function ViewValue(props: {
  owner: OwnerKey;
  value: Value;
  onEdit: () => void;
  onForget: () => void;
  onPutBack: (one: Change) => void;
}) {
  const { t, i18n } = useTranslation();
  const mayChange = useHasRole("operator");
  const one = props.value;
  const known = useInfiniteQuery(history(props.owner, one));
  const now = known.data?.pages[0]?.changes[0];
  const when = (at: number | null | undefined) =>
    at ? `${moment(at, i18n.language)} (${ago(at, i18n.language)})` : null;
  const changed = now ? now.changedAt : one.changedAt;
  return (
    <>
      <DescriptionList
        facts={{
          [t("memory.namespace")]: one.namespace,
          [t("memory.changed")]: when(changed),
          [t("memory.writtenBy")]: now ? <Writer by={now.by} /> : null,
          [t("memory.expires")]: when(now ? now.expiresAt : one.expiresAt) ?? (changed ? t("memory.never") : null),
        }}
      />
      <div className="mt-3">
        <JsonTree value={one.value as Json} />
      </div>
      <History query={known} onPutBack={props.onPutBack} />
      {mayChange ? (
        <DialogActions>
          <Button kind="danger" onClick={props.onForget}>
            {t("memory.forget")}
          </Button>
          <Button onClick={props.onEdit}>{t("memory.edit")}</Button>
        </DialogActions>
      ) : null}
    </>
  );
}

function EditValue(props: { owner: OwnerKey; value: Value | null; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [key, setKey] = useState(props.value?.key ?? "");
  const [namespace, setNamespace] = useState(props.value?.namespace ?? "");
  const [text, setText] = useState(JSON.stringify(props.value?.value ?? "", null, 2));
  const [ttl, setTtl] = useState<number>(0);
  const value = jsonIn(text);
  const keep = useMutation({
    mutationFn: (given: Json) => remember(props.owner, namespace.trim(), key, given, ttl || null),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["memory"] });
      props.onClose();
    },
  });
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (value !== undefined && value !== null) keep.mutate(value);
      }}
    >
      {props.value ? null : (
        <div className="grid gap-4 sm:grid-cols-2">
          <LabelledField name={t("memory.key")} required>
            {(its) => <input {...its} value={key} onChange={(event) => setKey(event.target.value)} />}
          </LabelledField>
          <LabelledField name={t("memory.namespace")} about={t("memory.namespaceAbout")}>
            {(its) => <input {...its} value={namespace} onChange={(event) => setNamespace(event.target.value)} />}
          </LabelledField>
        </div>
      )}
      <JsonField name={t("memory.valueJson")} text={text} onChange={setText} rows={10} />
      <LabelledField name={t("memory.ttl")} about={props.value?.expiresAt ? t("memory.ttlAnew") : undefined}>
        {(its) => (
          <select {...its} value={ttl} onChange={(event) => setTtl(Number(event.target.value))}>
            {TTLS.map((one) => (
              <option key={one} value={one}>
                {t(`memory.ttls.${one}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      {keep.isError ? <ErrorMessage error={keep.error} /> : null}
      <DialogActions onClose={props.onClose}>
        <Button kind="primary" type="submit" disabled={keep.isPending || !key || value === undefined || value === null}>
          {t("memory.save")}
        </Button>
      </DialogActions>
    </form>
  );
}
