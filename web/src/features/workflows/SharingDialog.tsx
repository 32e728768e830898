import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError, ApiResponse } from "@/api/http";
import { me } from "@/api/queries";
import type { Me } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { QueryResult } from "@/components/QueryResult";
import { ErrorMessage } from "@/components/StatusMessage";
import { type Audience, type Sharing, share, sharing } from "./catalogue";
import { folderSharing, shareFolder } from "./folders";

const AUDIENCES: readonly Audience[] = ["private", "groups", "everyone"];

type Save = (etag: string | null, audience: Audience, groups: readonly string[]) => Promise<ApiResponse<Sharing>>;

/** The users who may see and use a workflow. Only its owner and admins can change it. */
export function SharingDialog({ id, ...rest }: { id: string; name: string; onClose: () => void }) {
  return <SharingOf query={sharing(id)} save={(...change) => share(id, ...change)} {...rest} />;
}

/** The users who may see a folder and the workflows in it. */
export function FolderSharingDialog({ path, onClose }: { path: string; onClose: () => void }) {
  return (
    <SharingOf
      query={folderSharing(path)}
      save={(...change) => shareFolder(path, ...change)}
      name={path}
      onClose={onClose}
    />
  );
}

type SharingQuery = ReturnType<typeof sharing> | ReturnType<typeof folderSharing>;

function SharingOf(props: { query: SharingQuery; save: Save; name: string; onClose: () => void }) {
  const { t } = useTranslation();
  const { queryKey, queryFn } = props.query as ReturnType<typeof sharing>;
  const known = useQuery({ queryKey, queryFn, refetchOnWindowFocus: false } as ReturnType<typeof sharing>);
  const self = useQuery(me());
  return (
    <DraftDialog
      open
      onClose={props.onClose}
      title={t("sharing.of", { name: props.name })}
      about={known.data?.value.owner ? t("sharing.owner", { owner: known.data.value.owner }) : t("sharing.nobodys")}
    >
      <QueryResult query={known}>
        {(read) => (self.data ? <SharingForm key={read.etag} {...props} read={read} self={self.data} /> : null)}
      </QueryResult>
    </DraftDialog>
  );
}

/** The form starts with the loaded state; its ETag rejects a change if the state has changed since. */
function SharingForm(props: {
  query: SharingQuery;
  save: Save;
  read: ApiResponse<Sharing>;
  self: Me;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { self } = props;
  const { value: sharingState, etag } = props.read;
  const isOwn = self.role === "admin" || sharingState.owner === self.name;
  const [audience, choose] = useState<Audience>(sharingState.audience);
  const [groups, setGroups] = useState((sharingState.groups.length > 0 ? sharingState.groups : self.groups).join(", "));
  const named = [...new Set(groups.split(",").map((one) => one.trim()))].filter(Boolean);
  const save = useMutation<ApiResponse<Sharing>, ApiError>({
    mutationFn: () => props.save(etag, audience, audience === "groups" ? named : []),
    onSuccess: async (next) => {
      client.setQueryData<ApiResponse<Sharing>>(props.query.queryKey as readonly unknown[], next);
      await client.invalidateQueries({ queryKey: ["workflows"] });
      props.onClose();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <fieldset disabled={!isOwn} className="space-y-1">
        <legend className="sr-only">{t("sharing.who")}</legend>
        {AUDIENCES.map((one) => (
          <label key={one} className="flex cursor-pointer gap-3 rounded-md p-2 hover:bg-sunken">
            <input
              type="radio"
              name="audience"
              className="mt-0.5 size-4"
              checked={audience === one}
              onChange={() => choose(one)}
            />
            <span>
              <span className="font-medium">{t(`sharing.audience.${one}`)}</span>
              <span className="block text-ink-soft">{t(`sharing.audienceAbout.${one}`)}</span>
            </span>
          </label>
        ))}
        {audience === "groups" ? (
          <LabelledField name={t("sharing.groups")} about={t("sharing.groupsAbout")} required>
            {(its) => <input {...its} value={groups} onChange={(event) => setGroups(event.target.value)} />}
          </LabelledField>
        ) : null}
      </fieldset>
      {isOwn ? null : <p className="mt-3 text-ink-soft">{t("sharing.notYours")}</p>}
      {save.isError ? (
        <div className="mt-3">
          <ErrorMessage error={save.error} />
        </div>
      ) : null}
      <DialogActions>
        <Button onClick={props.onClose}>{t(isOwn ? "dialog.cancel" : "dialog.close")}</Button>
        {isOwn ? (
          <Button
            type="submit"
            kind="primary"
            disabled={save.isPending || (audience === "groups" && named.length === 0)}
          >
            {t("sharing.save")}
          </Button>
        ) : null}
      </DialogActions>
    </form>
  );
}
