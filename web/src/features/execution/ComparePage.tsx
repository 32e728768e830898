import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest, query } from "@/api/http";
import { executionDefinition, executionPath } from "@/api/queries";
import type { EventPage, Execution, JournalEvent } from "@/api/views";
import { amount, money } from "@/components/amounts";
import { ExecutionLink } from "@/components/ExecutionLink";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { Status } from "@/components/Status";
import { EmptyMessage } from "@/components/StatusMessage";
import { moment, span } from "@/components/times";
import { useWorkflowName } from "@/components/useWorkflowName";
import { NodesContext, stepName, useNodeName } from "@/graph/model/nodeNames";
import { Changes } from "@/values/Changes";
import { brief, changesIn } from "@/values/changes";
import { firstDifference, groupsOf, pairsOf } from "./alignment";
import { GroupRows } from "./ComparedRows";
import { costsOf, totalOf } from "./costs";
import { type HandEdit, handEdits, onlyIn } from "./handEdits";
import { type ExecutionTimeline, timelineOf } from "./timelineModel";

const PAGE = 1000;
const EVENTS_MAX = 20_000;
const SHOWN_MAX = 500;

interface ExecutionSide {
  execution: Execution;
  timeline: ExecutionTimeline;
  edits: HandEdit[];
  isCut: boolean;
}

const executionSide = (id: string) => ({
  queryKey: ["execution", id, "compared"],
  queryFn: async (): Promise<ExecutionSide> => {
    const known = await apiRequest<Execution>(executionPath(id));
    const events: JournalEvent[] = [];
    let after: string | null = null;
    for (;;) {
      const path: string = `${executionPath(id)}/events${query({ after, limit: PAGE })}`;
      const page: EventPage = await apiRequest<EventPage>(path);
      events.push(...page.events);
      after = page.last;
      const isAll = page.events.length < PAGE;
      if (isAll || events.length >= EVENTS_MAX)
        return { execution: known, timeline: timelineOf(events), edits: handEdits(events), isCut: !isAll };
    }
  },
});

/** Two executions side by side: their steps by branch and round, the first difference, their data, and their usage. */
export function ComparePage() {
  const { t } = useTranslation();
  const { a, b } = useSearch({ from: "/executions/compare" });
  if (!a || !b)
    return (
      <Page title={t("compare.title")} back={{ to: "/executions", name: t("executions.title") }}>
        <EmptyMessage title={t("compare.two")}>{t("compare.twoHint")}</EmptyMessage>
      </Page>
    );
  return <Comparison key={`${a} ${b}`} a={a} b={b} />;
}

function Comparison({ a, b }: { a: string; b: string }) {
  const { t } = useTranslation();
  const one = useQuery(executionSide(a));
  const other = useQuery(executionSide(b));
  const [mine, theirs] = [useQuery(executionDefinition(a)).data, useQuery(executionDefinition(b)).data];
  // If both executions have a node, the name in the first one is shown.
  const nodes = useMemo(() => [...(theirs?.nodes ?? []), ...(mine?.nodes ?? [])], [mine, theirs]);
  return (
    <Page
      title={t("compare.title")}
      about={t("compare.about")}
      back={{ to: "/executions", name: t("executions.title") }}
    >
      <QueryResult query={one}>
        {(left) => (
          <QueryResult query={other}>
            {(right) => (
              <NodesContext.Provider value={nodes}>
                {left.execution.startedAt <= right.execution.startedAt ? (
                  <ComparisonTable left={left} right={right} />
                ) : (
                  <ComparisonTable left={right} right={left} />
                )}
              </NodesContext.Provider>
            )}
          </QueryResult>
        )}
      </QueryResult>
    </Page>
  );
}

function ComparisonTable({ left, right }: { left: ExecutionSide; right: ExecutionSide }) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const [onlyDifferent, setOnlyDifferent] = useState(false);
  const pairs = useMemo(() => pairsOf(left.timeline, right.timeline), [left, right]);
  const changes = useMemo(() => changesIn(left.execution.state, right.execution.state), [left, right]);
  const isInputDifferent = changesIn(left.execution.input, right.execution.input).length > 0;
  const firstDifferenceAt = firstDifference(pairs);
  const shown = onlyDifferent ? pairs.filter((pair) => pair.difference !== "same") : pairs;
  const first = pairs[firstDifferenceAt];
  return (
    <div className="space-y-6">
      <div className="grid gap-3 sm:grid-cols-2">
        <Side name="A" executionSide={left} other={{ name: "B", id: right.execution.executionId }} />
        <Side name="B" executionSide={right} other={{ name: "A", id: left.execution.executionId }} />
      </div>
      <p className="rounded-md border border-line bg-surface p-3">
        {first
          ? t("compare.parts", { step: stepName(first.step, nodeName), how: t(`compare.${first.difference}`) })
          : t("compare.alike")}
        <HandEdits side="A" edits={onlyIn(left.edits, right.edits)} />
        <HandEdits side="B" edits={onlyIn(right.edits, left.edits)} />
        {isInputDifferent ? <span className="block text-ink-soft">{t("compare.inputs")}</span> : null}
      </p>
      <section>
        <div className="mb-2 flex flex-wrap items-center gap-3">
          <h2 className="font-semibold">{t("compare.steps")}</h2>
          <label className="flex min-h-6 items-center gap-1.5 text-ink-soft">
            <input
              type="checkbox"
              checked={onlyDifferent}
              onChange={(event) => setOnlyDifferent(event.target.checked)}
            />
            {t("compare.onlyDifferent")}
          </label>
        </div>
        <div className="overflow-x-auto rounded-lg border border-line bg-surface">
          <table className="w-full text-sm">
            <thead>
              <tr className="text-left text-xs text-ink-faint">
                <th scope="col" className="p-2">
                  {t("compare.step")}
                </th>
                <th scope="col" className="p-2">
                  A
                </th>
                <th scope="col" className="p-2">
                  B
                </th>
                <th scope="col" className="p-2">
                  {t("compare.difference")}
                </th>
              </tr>
            </thead>
            <tbody>
              {groupsOf(shown.slice(0, SHOWN_MAX)).map((group) => (
                <GroupRows key={group.pairs[0]?.step} group={group} first={first} />
              ))}
            </tbody>
          </table>
        </div>
        {shown.length > SHOWN_MAX || left.isCut || right.isCut ? (
          <p className="mt-1 text-ink-faint">{t("compare.cut")}</p>
        ) : null}
      </section>
      <section>
        <h2 className="mb-2 font-semibold">{t("compare.data")}</h2>
        <Changes changes={changes} />
      </section>
    </div>
  );
}

/** Edits by hand are the cause of what follows, so they are named beside the first difference. */
function HandEdits({ side, edits }: { side: string; edits: readonly HandEdit[] }) {
  const { t } = useTranslation();
  return edits.map((one) => (
    <span key={`${one.path} ${JSON.stringify(one.value)}`} className="block text-waiting">
      {t(one.by ? "compare.handEditBy" : "compare.handEdit", {
        side,
        path: one.path,
        value: brief(one.value, 60),
        by: one.by,
      })}
    </span>
  ));
}

function Side(props: { name: string; executionSide: ExecutionSide; other: { name: string; id: string } }) {
  const { t, i18n } = useTranslation();
  const { name, other } = props;
  const { execution: one, timeline } = props.executionSide;
  const origin = timeline.origin;
  const nodeName = useWorkflowName();
  const total = totalOf(costsOf(timeline));
  return (
    <div className="rounded-lg border border-line bg-surface p-3">
      <p className="flex flex-wrap items-center gap-2">
        <strong>{name}</strong>
        <Link to="/executions/$id" params={{ id: one.executionId }} className="text-accent underline">
          <bdi title={one.workflowId}>{nodeName(one.workflowId)}</bdi>
        </Link>
        <Status status={one.status} />
      </p>
      <p className="mt-1 text-xs text-ink-soft tabular-nums">
        {t("compare.began", { at: moment(one.startedAt, i18n.language) })}
      </p>
      {origin ? (
        <p className="text-xs">
          {t("execution.forkOf", { row: origin.row })}{" "}
          {origin.execution === other.id ? <strong>{other.name}</strong> : <ExecutionLink id={origin.execution} />}
        </p>
      ) : null}
      <p className="font-mono text-xs break-all text-ink-faint">{one.executionId}</p>
      <p className="mt-1 text-xs text-ink-soft tabular-nums">
        {t("compare.took", {
          time: span(timeline.to - timeline.from),
          steps: timeline.order.length,
          calls: total.calls,
          tokens: amount(total.input + total.output),
          cost: total.cost === null ? "–" : money(total.cost),
        })}
      </p>
    </div>
  );
}
