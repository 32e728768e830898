import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { apiResponse } from "@/api/http";
import type { JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { BOX, LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { type Agent, agentsByName, createAgent, saveAgent } from "../agents/agents";
import type { Draft } from "./prompt";

/** Save the system prompt and a model as an agent, or as the next revision of one. */
export function SaveAgentDialog({ draft, onClose }: { draft: Draft; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const models = [...new Set(draft.targets.flatMap((one) => (one.kind === "model" ? [one.name.trim()] : [])))];
  const [name, setName] = useState(draft.targets.find((one) => one.kind === "agent")?.name ?? "");
  const [model, setModel] = useState(models[0] ?? "");
  const wanted = useDeferredValue(name.trim());
  const same = useQuery({ ...agentsByName([wanted]), enabled: wanted !== "" });
  const existing = same.data?.find((one) => one.name === name.trim());
  const save = useMutation({
    mutationFn: () => saveAs(name.trim(), { system: draft.system, ...(model ? { model } : {}) }, existing),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["agents"] });
      await navigate({ to: "/agents/$name", params: { name: name.trim() } });
    },
  });
  return (
    <DraftDialog open onClose={onClose} title={t("playground.saveAgent")} about={t("playground.saveAgentAbout")}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate();
        }}
      >
        <LabelledField
          name={t("agents.name")}
          about={existing ? t("playground.nextRevision", { revision: existing.revision + 1 }) : t("agents.nameAbout")}
          required
        >
          {(its) => (
            <input {...its} value={name} spellCheck={false} onChange={(event) => setName(event.target.value)} />
          )}
        </LabelledField>
        {models.length > 1 ? (
          <LabelledField name={t("agents.model")}>
            {(its) => (
              <select {...its} className={BOX} value={model} onChange={(event) => setModel(event.target.value)}>
                {models.map((one) => (
                  <option key={one} value={one}>
                    {one || t("playground.defaultModel")}
                  </option>
                ))}
              </select>
            )}
          </LabelledField>
        ) : null}
        {save.isError ? <ErrorMessage error={save.error} /> : null}
        <DialogActions onClose={onClose}>
          <Button kind="primary" type="submit" disabled={!name.trim() || same.isFetching || save.isPending}>
            {t(existing ? "playground.saveRevision" : "playground.save")}
          </Button>
        </DialogActions>
      </form>
    </DraftDialog>
  );
}

/** Create the agent, or save the fields over those of its latest revision. Throws if another person saves meanwhile. */
async function saveAs(name: string, fields: JsonObject, existing: Agent | undefined): Promise<void> {
  if (existing === undefined) {
    await createAgent(name, fields);
    return;
  }
  const latest = await apiResponse<Agent>(`/api/agents/${encodeURIComponent(name)}`, {});
  await saveAgent(latest, { ...(latest.value.agent as JsonObject), ...fields });
}
