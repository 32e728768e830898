import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { agentsByName, createAgent } from "./agents";

/** Create an agent with a name and instructions; its page has the other settings. */
export function NewAgentDialog(props: { onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [system, setSystem] = useState("");
  const wanted = useDeferredValue(name.trim());
  const same = useQuery({ ...agentsByName([wanted]), enabled: wanted !== "" });
  const isTaken = same.data?.some((one) => one.name === name.trim()) ?? false;
  const begin = useMutation({
    mutationFn: () => createAgent(name.trim(), { system }),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: ["agents"] });
      await navigate({ to: "/agents/$name", params: { name: made.name } });
    },
  });
  return (
    <DraftDialog open onClose={props.onClose} title={t("agents.new")} about={t("agents.newAbout")}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          begin.mutate();
        }}
      >
        <LabelledField
          name={t("agents.name")}
          about={t("agents.nameAbout")}
          error={isTaken ? t("agents.taken") : undefined}
          required
        >
          {(its) => (
            <input {...its} value={name} spellCheck={false} onChange={(event) => setName(event.target.value)} />
          )}
        </LabelledField>
        <LabelledField name={t("agents.system")} about={t("agents.systemAbout")} required>
          {(its) => <textarea {...its} rows={6} value={system} onChange={(event) => setSystem(event.target.value)} />}
        </LabelledField>
        {begin.isError ? <ErrorMessage error={begin.error} /> : null}
        <DialogActions onClose={props.onClose}>
          <Button kind="primary" type="submit" disabled={!name.trim() || !system.trim() || isTaken || begin.isPending}>
            {t("agents.make")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}
