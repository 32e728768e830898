import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Play, Save, Square } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { control } from "@/api/queries";
import { Button } from "@/components/Button";
import { LabelledField } from "@/components/LabelledField";
import { Page } from "@/components/Page";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { models } from "../models/models";
import { Messages } from "./Messages";
import { isRunnable, variablesOf, WORKFLOW } from "./prompt";
import { Results } from "./Results";
import { Rows } from "./Rows";
import { SaveAgentDialog } from "./SaveAgentDialog";
import { createPlayground, type PlaygroundStore, usePlayground } from "./store";
import { Targets } from "./Targets";
import { useAnswers } from "./useAnswers";
import { Versions } from "./Versions";

/** Run a prompt with one to four models or agents side by side. Each answer is an execution. */
export function PlaygroundPage() {
  const { t } = useTranslation();
  const [store] = useState(createPlayground);
  return (
    <Page
      title={t("playground.title")}
      about={t("playground.about")}
      isWide
      actions={
        <Link
          to="/executions"
          search={{ workflow: WORKFLOW, trials: true }}
          className="inline-flex min-h-6 items-center text-accent hover:underline"
        >
          {t("playground.executions")}
        </Link>
      }
    >
      <Prompt store={store} />
      <Run store={store} />
    </Page>
  );
}

function Prompt({ store }: { store: PlaygroundStore }) {
  const { t } = useTranslation();
  const draft = usePlayground(store, (now) => now.draft);
  const { change } = store.getState();
  return (
    <div className="grid gap-x-6 gap-y-4 lg:grid-cols-2">
      <div className="space-y-4">
        <LabelledField name={t("playground.system")}>
          {(its) => (
            <textarea
              {...its}
              rows={4}
              value={draft.system}
              onChange={(event) => change({ system: event.target.value })}
            />
          )}
        </LabelledField>
        <Messages messages={draft.messages} onRemove={() => change({ messages: [] })} />
        <LabelledField
          name={t("playground.user")}
          about={t("playground.userAbout", { example: "{{topic}}" })}
          required={draft.messages.length === 0}
        >
          {(its) => (
            <textarea {...its} rows={6} value={draft.user} onChange={(event) => change({ user: event.target.value })} />
          )}
        </LabelledField>
      </div>
      <div className="space-y-4">
        <Targets targets={draft.targets} onChange={(targets) => change({ targets })} />
        <Rows rows={draft.rows} variables={variablesOf(draft)} onChange={(rows) => change({ rows })} />
        <Versions store={store} />
      </div>
    </div>
  );
}

/** The button that runs the prompt, and the answers of the latest run or the chosen version. */
function Run({ store }: { store: PlaygroundStore }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const draft = usePlayground(store, (now) => now.draft);
  const version = usePlayground(store, (now) => now.versions.find((one) => one.id === now.shown));
  const mayRun = useHasRole("editor");
  const known = useQuery(models());
  const answers = useAnswers(version);
  const [isSaving, setSaving] = useState(false);
  const start = useMutation({ mutationFn: () => store.getState().run() });
  const stop = useMutation({
    mutationFn: () => Promise.all(answers.running.map((id) => control(id, "cancel"))),
    onSettled: () => client.invalidateQueries({ queryKey: ["execution"] }),
  });
  const override = known.data?.forEveryAgent && known.data.default !== "scripted" ? known.data.default : null;
  return (
    <>
      <div className="mt-5 flex flex-wrap items-end gap-3 border-t border-line pt-4">
        <div className="w-48">
          <LabelledField name={t("playground.limit")}>
            {(its) => (
              <input
                {...its}
                type="number"
                min={0}
                step="any"
                value={draft.limit}
                onChange={(event) => store.getState().change({ limit: event.target.value })}
              />
            )}
          </LabelledField>
        </div>
        <Button
          kind="primary"
          disabled={!mayRun || !isRunnable(draft) || start.isPending}
          onClick={() => start.mutate()}
        >
          <Play className="size-4" aria-hidden /> {t("playground.run")}
        </Button>
        {answers.running.length > 0 ? (
          <Button disabled={stop.isPending} onClick={() => stop.mutate()}>
            <Square className="size-4" aria-hidden /> {t("playground.stop")}
          </Button>
        ) : null}
        <Button disabled={!mayRun || !draft.system.trim()} onClick={() => setSaving(true)}>
          <Save className="size-4" aria-hidden /> {t("playground.saveAgent")}
        </Button>
        {mayRun ? null : <p className="text-ink-soft">{t("playground.mayNot")}</p>}
      </div>
      {override ? <p className="mt-3 text-waiting">{t("models.forEveryAgent", { name: override })}</p> : null}
      {[start.error, stop.error].map((error) =>
        error ? (
          <div key={error.message} className="mt-3">
            <ErrorMessage error={error} />
          </div>
        ) : null,
      )}
      {version ? <Results version={version} answers={answers} /> : null}
      {isSaving ? <SaveAgentDialog draft={draft} onClose={() => setSaving(false)} /> : null}
    </>
  );
}
