/** The fields of a node between its data of a past execution: what arrived on the left, what it returned on the right. */
import { useQuery } from "@tanstack/react-query";
import { Pin, Play } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { executionAt } from "@/api/queries";
import type { DefinitionNode } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { ErrorDetail } from "@/components/ErrorDetail";
import { Status } from "@/components/Status";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { moment } from "@/components/times";
import { useEditor } from "@/features/editor/editorContext";
import { InsertTargetContext } from "@/features/editor/fields/fieldContext";
import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { type InsertPath, ValueTree } from "@/values/ValueTree";
import type { StepRecord } from "../execution/timelineModel";
import { Value } from "../execution/Value";
import { arrivedAt, runWith } from "./arrived";
import { isPinnable, lastRuns, loadRun, pastRuns, type Run, resultOf } from "./lastRuns";
import { tryoutOf, useTryout } from "./tryout";
import { useRun } from "./useRun";

const SELECT = "h-8 w-full min-w-0 rounded-md border border-line-strong bg-surface px-2";

/** `children`: the form of the node. */
export default function NodeData(props: { node: DefinitionNode; onClose: () => void; children: ReactNode }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  const { node, onClose, children } = props;
  const { runs, choose, run } = usePastRun(node.id);
  const steps = run.data?.story.nodes.get(node.id)?.steps ?? [];
  const [wanted, want] = useState("");
  const step = run.data?.story.steps.get(steps.includes(wanted) ? wanted : (steps.at(-1) ?? ""));
  const [target, setTarget] = useState<InsertPath>(null);
  return (
    <Dialog open wide="full" onClose={onClose} title={nameOf(node.id)} about={t("data.about")}>
      <div className="grid gap-5 md:grid-cols-3">
        <section aria-label={t("data.arrived")} className="min-w-0 space-y-2">
          <h3 className="font-semibold">{t("data.arrived")}</h3>
          <RunSelect runs={runs} chosen={run.data?.execution ?? ""} onChoose={choose} />
          {steps.length > 1 ? (
            <select
              aria-label={t("data.step")}
              value={step?.step}
              onChange={(event) => want(event.target.value)}
              className={SELECT}
            >
              {steps.map((one) => (
                <option key={one} value={one}>
                  {stepName(one, nameOf)}
                </option>
              ))}
            </select>
          ) : null}
          {run.isError ? <ErrorMessage error={run.error} /> : null}
          {run.isLoading ? <Loading /> : null}
          {run.data && step ? (
            <Arrived run={run.data} step={step} target={target} />
          ) : run.isLoading ? null : (
            <p className="text-ink-soft">{t(runs.length > 0 ? "data.notReached" : "data.noRuns")}</p>
          )}
        </section>
        <section aria-label={t("data.fields")} className="min-w-0">
          <InsertTargetContext value={setTarget}>{children}</InsertTargetContext>
        </section>
        <section aria-label={t("data.returned")} className="min-w-0 space-y-2">
          <h3 className="font-semibold">{t("data.returned")}</h3>
          <Returned node={node} step={step} />
        </section>
      </div>
    </Dialog>
  );
}

/** The chosen past execution, by default the latest that reached the node. */
function usePastRun(node: string) {
  const { id } = useEditor();
  const [chosen, choose] = useState<string | null>(null);
  const last = useQuery(lastRuns(id));
  const runs = useQuery(pastRuns(id)).data ?? [];
  const latest = runWith(last.data ?? [], node)?.execution ?? runs[0]?.executionId;
  const wanted = chosen ?? latest;
  const run = useQuery({
    queryKey: ["last", id, "run", wanted],
    queryFn: ({ signal }) => loadRun(wanted ?? "", signal),
    enabled: wanted !== undefined && !last.isPending,
    initialData: () => last.data?.find((one) => one.execution === wanted),
    initialDataUpdatedAt: last.dataUpdatedAt,
  });
  return { runs, choose, run };
}

function RunSelect(props: {
  runs: readonly { executionId: string; status: string; startedAt: number }[];
  chosen: string;
  onChoose: (execution: string) => void;
}) {
  const { t, i18n } = useTranslation();
  if (props.runs.length === 0) return null;
  return (
    <select
      aria-label={t("data.execution")}
      value={props.chosen}
      onChange={(event) => props.onChoose(event.target.value)}
      className={SELECT}
    >
      {props.runs.map((one) => (
        <option key={one.executionId} value={one.executionId}>
          {moment(one.startedAt, i18n.language)} · {t(`status.${one.status}`)}
        </option>
      ))}
    </select>
  );
}

function Arrived({ run, step, target }: { run: Run; step: StepRecord; target: InsertPath }) {
  const { t } = useTranslation();
  // The row in which the step begins also holds what its predecessor wrote.
  const before = useQuery(executionAt(run.execution, step.seq));
  if (before.isError) return <ErrorMessage error={before.error} />;
  if (!before.data) return <Loading />;
  return (
    <>
      <p className="text-xs text-ink-faint">
        {target ? t("data.insertsInto", { field: target.name }) : t("data.drag")}
      </p>
      <ValueTree value={arrivedAt(before.data.state ?? {}, run, step)} name={t("data.arrived")} into={target} />
    </>
  );
}

function Returned({ node, step }: { node: DefinitionNode; step: StepRecord | undefined }) {
  const { t } = useTranslation();
  const { id } = useEditor();
  const { run } = useRun();
  const isPinned = useTryout(id, (now) => now.pins[node.id] !== undefined);
  const result = resultOf(step);
  return (
    <>
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => run.mutate({ until: node.id, fresh: false })} disabled={run.isPending}>
          <Play className="size-4" aria-hidden /> {t("data.runAgain")}
        </Button>
        {isPinnable(node.type) && result !== undefined ? (
          <Button onClick={() => tryoutOf(id).getState().pin(node.id, result)} aria-pressed={isPinned}>
            <Pin className="size-4" aria-hidden /> {t("data.pin")}
          </Button>
        ) : null}
      </div>
      {step ? <Status status={step.status} /> : <p className="text-ink-soft">{t("data.nothingReturned")}</p>}
      {step?.failure ? (
        <ErrorDetail
          code={step.failure.code}
          message={step.failure.message}
          hint={step.failure.hint}
          look="text-failed"
        />
      ) : null}
      {result === undefined ? null : <Value value={result} />}
    </>
  );
}
