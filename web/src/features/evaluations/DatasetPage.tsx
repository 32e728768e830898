import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Play, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import type { ExecutionStatus, Json } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { PageSection } from "@/components/DescriptionList";
import { Listing } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { Status } from "@/components/Status";
import { EmptyMessage, ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { WorkflowLink } from "@/components/WorkflowLink";
import { brief } from "@/values/changes";
import { type Dataset, dataset, evaluate, percent, type Run, removeDataset, runs } from "./evaluations";
import { ScoreChart } from "./ScoreChart";

interface Case {
  input: Json;
  expected?: Json;
}

/** One dataset: its runs with the scores over revisions, and its cases. */
export function DatasetPage() {
  const { t } = useTranslation();
  const { name } = useParams({ from: "/evaluations/$name" });
  const known = useQuery(dataset(name));
  const found = useQuery(runs(name));
  return (
    <Page
      title={known.data?.name ?? name}
      back={{ to: "/evaluations", name: t("evaluations.title") }}
      about={known.data ? <WorkflowLink id={known.data.workflow} className="hover:underline" /> : undefined}
      actions={known.data ? <Actions of={known.data} /> : undefined}
    >
      <PageSection title={t("evaluations.runs")}>
        <QueryResult query={found}>{(all) => <Runs all={all} name={name} />}</QueryResult>
      </PageSection>
      <PageSection title={t("evaluations.cases")}>
        <QueryResult query={known}>
          {(one) =>
            one.cases.length === 0 ? (
              <EmptyMessage title={t("evaluations.noCases")}>{t("evaluations.noCasesHint")}</EmptyMessage>
            ) : (
              <Listing
                name={t("evaluations.cases")}
                entries={(one.cases as unknown as Case[]).map((each, at) => ({ ...each, nth: at + 1 }))}
                keyOf={(each) => String(each.nth)}
                columns={[
                  { name: t("evaluations.case"), cell: (each) => each.nth },
                  { name: t("evaluations.input"), cell: (each) => brief(each.input) },
                  { name: t("evaluations.expected"), cell: (each) => brief(each.expected ?? null) },
                ]}
              />
            )
          }
        </QueryResult>
      </PageSection>
    </Page>
  );
}

function Runs({ all, name }: { all: readonly Run[]; name: string }) {
  const { t, i18n } = useTranslation();
  const scorers = [...new Set(all.flatMap((one) => Object.keys(one.scores)))];
  if (all.length === 0)
    return <EmptyMessage title={t("evaluations.noRuns")}>{t("evaluations.noRunsHint")}</EmptyMessage>;
  return (
    <>
      <ScoreChart runs={all} />
      <Listing
        name={t("evaluations.runs")}
        entries={all}
        keyOf={(one) => one.executionId}
        columns={[
          {
            name: t("evaluations.run"),
            cell: (one) => (
              <Link to="/evaluations/$name/$run" params={{ name, run: one.executionId }} className="hover:underline">
                {t("evaluations.revision", { revision: one.revision })}
              </Link>
            ),
          },
          { name: t("evaluations.status"), cell: (one) => <Status status={one.status as ExecutionStatus} /> },
          ...scorers.map((scorer) => ({
            name: scorer,
            isNumber: true,
            cell: (one: Run) =>
              one.scores[scorer] === undefined ? null : percent(one.scores[scorer] ?? 0, i18n.language),
          })),
          { name: t("evaluations.failed"), isNumber: true, cell: (one) => one.failed || null },
          { name: t("evaluations.started"), cell: (one) => <RelativeTime at={one.at} /> },
        ]}
      />
    </>
  );
}

function Actions({ of }: { of: Dataset }) {
  const name = of.id;
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const mayRun = useHasRole("operator");
  const mayWrite = useHasRole("editor");
  const [isSure, setSure] = useState(false);
  const begin = useMutation<{ executionId: string }, ApiError>({
    mutationFn: () => evaluate(name),
    onSuccess: () => client.invalidateQueries({ queryKey: ["evaluations", name] }),
  });
  const remove = async () => {
    await removeDataset(of);
    await client.invalidateQueries({ queryKey: ["datasets"] });
    await navigate({ to: "/evaluations" });
  };
  return (
    <>
      {begin.isError ? <ErrorMessage error={begin.error} /> : null}
      {mayWrite ? (
        <Button kind="danger" onClick={() => setSure(true)}>
          <Trash2 className="size-4" aria-hidden /> {t("evaluations.delete")}
        </Button>
      ) : null}
      {mayRun ? (
        <Button kind="primary" disabled={of.count === 0 || begin.isPending} onClick={() => begin.mutate()}>
          <Play className="size-4" aria-hidden /> {t("evaluations.evaluate")}
        </Button>
      ) : null}
      {isSure ? (
        <Confirm
          title={t("evaluations.deleteSure", { name })}
          about={t("evaluations.deleteAbout")}
          confirmLabel={t("evaluations.delete")}
          action={remove}
          onClose={() => setSure(false)}
        />
      ) : null}
    </>
  );
}
