import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError, ApiResponse } from "@/api/http";
import type { JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { Card, PageSection } from "@/components/DescriptionList";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { useWorkflowName } from "@/components/useWorkflowName";
import { AgentForm } from "./AgentForm";
import { type Agent, agent, deleteAgent, saveAgent, uses } from "./agents";
import { TryAgent } from "./TryAgent";
import { AgentUses } from "./Uses";
import { Versions } from "./Versions";

/** One agent: its settings, the workflows that use it, and its revisions. */
export function AgentPage() {
  const { t } = useTranslation();
  const { name } = useParams({ from: "/agents/$name" });
  const known = useQuery(agent(name));
  return (
    <Page
      title={name}
      back={{ to: "/agents", name: t("agents.title") }}
      about={known.data ? t("agents.revision", { revision: known.data.value.revision }) : undefined}
      actions={known.data ? <Delete read={known.data} /> : null}
    >
      <QueryResult query={known}>
        {(read) => (
          <>
            <Editing key={name} read={read} />
            <PageSection
              title={t("agents.uses")}
              about={t("agents.usesAbout", { name, revision: read.value.revision })}
            >
              <AgentUses name={name} />
            </PageSection>
            <PageSection title={t("agents.versions")}>
              <Versions read={read} />
            </PageSection>
          </>
        )}
      </QueryResult>
    </Page>
  );
}

/** The form keeps the user's changes if another user saves meanwhile, and shows a notice. */
function Editing({ read }: { read: ApiResponse<Agent> }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const mayWrite = useHasRole("editor");
  const [base, setBase] = useState(read);
  const [draft, setDraft] = useState(read.value.agent as JsonObject);
  const isChanged = JSON.stringify(draft) !== JSON.stringify(base.value.agent);
  const isBehind = read.value.revision > base.value.revision;
  const keep = useMutation<ApiResponse<Agent>, ApiError>({
    mutationFn: () => saveAgent(base, draft),
    onSuccess: (saved) => {
      setBase(saved);
      setDraft(saved.value.agent as JsonObject);
      client.setQueryData(["agents", saved.value.name], saved);
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["agents"] }),
  });
  function take() {
    setBase(read);
    setDraft(read.value.agent as JsonObject);
    keep.reset();
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a newer revision triggers this; a draft is never discarded
  useEffect(() => {
    if (isBehind && !isChanged) take();
  }, [read]);
  return (
    <>
      <Card>
        {isBehind && isChanged ? (
          <div role="alert" className="mb-4 flex flex-wrap items-center gap-3 rounded-md bg-waiting-soft p-3">
            {t("agents.behind", { revision: read.value.revision, who: read.value.author })}
            <Button onClick={take}>{t("agents.takeTheirs")}</Button>
          </div>
        ) : null}
        <AgentForm agent={draft} onChange={setDraft} disabled={!mayWrite || keep.isPending} />
        {keep.isError ? (
          <div className="mt-4">
            <ErrorMessage error={keep.error} />
          </div>
        ) : null}
        {mayWrite ? (
          <div className="mt-4 flex items-center justify-end gap-3">
            <span aria-live="polite" className="text-ink-soft">
              {isChanged ? t("agents.unsaved") : keep.isSuccess ? t("agents.isSaved") : ""}
            </span>
            <Button kind="primary" disabled={!isChanged || keep.isPending} onClick={() => keep.mutate()}>
              {t("agents.save")}
            </Button>
          </div>
        ) : null}
      </Card>
      {mayWrite ? <TryAgent name={base.value.name} draft={isChanged ? draft : null} /> : null}
    </>
  );
}

function Delete({ read }: { read: ApiResponse<Agent> }) {
  const { name } = read.value;
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const mayWrite = useHasRole("editor");
  const called = useWorkflowName();
  const used = useQuery(uses(name));
  const [asking, setAsking] = useState(false);
  if (!mayWrite) return null;
  const who = (used.data ?? []).map((one) => called(one.workflowId)).join(", ");
  return (
    <>
      <Button kind="danger" onClick={() => setAsking(true)}>
        <Trash2 className="size-4" aria-hidden /> {t("agents.delete")}
      </Button>
      {asking ? (
        <Confirm
          title={t("agents.deleteTitle", { name })}
          about={who ? t("agents.deleteUsed", { who }) : t("agents.deleteAbout")}
          confirmLabel={t("agents.delete")}
          action={() => deleteAgent(read)}
          onDone={async () => {
            await navigate({ to: "/agents" });
            client.removeQueries({ queryKey: ["agents", name] });
            await client.invalidateQueries({ queryKey: ["agents"] });
          }}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </>
  );
}
