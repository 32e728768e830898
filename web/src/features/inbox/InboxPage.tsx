import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { INBOX_MAX, inbox, me } from "@/api/queries";
import type { InboxGate } from "@/api/views";
import { now } from "@/clock";
import { EmptyMessage, ErrorMessage, Loading } from "@/components/StatusMessage";
import { ago, moment } from "@/components/times";
import { useTitle } from "@/components/useTitle";
import { useWorkflowName } from "@/components/useWorkflowName";
import { textIn } from "@/i18n";
import { type Assignee, choices, isAssignedTo } from "./assignees";
import { GateCard } from "./GateCard";
import { keyPressed, nextOf } from "./listKeys";
import { questionOf } from "./question";

/** The gates that the user can answer. After an answer the next gate opens. */
export function InboxPage() {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const [assignee, setAssignee] = useState<Assignee>("you");
  const [workflow, setWorkflow] = useState("");
  const [isDone, setDone] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState<InboxGate | null>(null);
  const user = useQuery(me()).data;
  const open = useQuery(inbox(true, assignee === "every"));
  const all = open.data ?? [];
  const workflows = [...new Set(all.map((one) => one.workflowId))].sort();
  const gates = all.filter(
    (one) =>
      !isDone.has(one.cursor) &&
      (!workflow || one.workflowId === workflow) &&
      (!user || isAssignedTo(assignee, one, user)),
  );
  // A gate that is opened again has another cursor, but stays selected.
  const shown = gates.find((one) => chosen !== null && gateOf(one) === gateOf(chosen)) ?? chosen ?? gates[0] ?? null;
  const isListed = shown !== null && gates.some((one) => one.cursor === shown.cursor);
  const choose = (cursor: string | null) => setChosen(gates.find((one) => one.cursor === cursor) ?? null);
  useTitle(t("inbox.title"));

  // Select the first gate explicitly, so that it stays on display if another user answers it.
  const first = gates[0];
  useEffect(() => {
    if (chosen === null && first) setChosen(first);
  }, [chosen, first]);
  useEffect(() => {
    const walk = (event: KeyboardEvent) => {
      const by = keyPressed(event) === "j" ? 1 : keyPressed(event) === "k" ? -1 : 0;
      if (by) choose(isListed ? nextOf(gates, shown.cursor, by) : (gates[0]?.cursor ?? null));
    };
    window.addEventListener("keydown", walk);
    return () => window.removeEventListener("keydown", walk);
  });
  const filter =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      set(value);
      setChosen(null);
    };
  const done = (cursor: string) => {
    const next = nextOf(gates, cursor, 1);
    setDone((now) => new Set(now).add(cursor));
    choose(next === cursor ? null : next);
  };

  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="text-xl font-semibold">{t("inbox.title")}</h1>
        <div className="ml-auto flex flex-wrap gap-x-4 gap-y-2">
          {user ? (
            <Choice
              name={t("inbox.whose")}
              value={assignee}
              options={choices(user).map((one) => [one, t(`inbox.${one}`)])}
              onChange={filter((one) => setAssignee(one as Assignee))}
            />
          ) : null}
          {workflows.length > 1 || workflow ? (
            <Choice
              name={t("inbox.workflow")}
              value={workflow}
              options={[["", t("inbox.any")], ...workflows.map((one): [string, string] => [one, workflowName(one)])]}
              onChange={filter(setWorkflow)}
            />
          ) : null}
        </div>
      </div>
      <div className="mt-5">
        {open.isPending ? <Loading /> : null}
        {open.isError ? <ErrorMessage error={open.error} onRetry={() => void open.refetch()} /> : null}
        {open.isSuccess && shown === null ? (
          all.length > 0 || assignee !== "you" ? (
            <EmptyMessage title={t("inbox.noneSuch")}>{t("inbox.noneSuchHint")}</EmptyMessage>
          ) : (
            <EmptyMessage isNew title={t("inbox.none")}>
              {t("inbox.noneHint")}
            </EmptyMessage>
          )
        ) : null}
        {shown ? (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-4 md:grid-cols-[20rem_minmax(0,1fr)]">
            <List gates={gates} shown={shown} onChoose={setChosen} />
            <div className="min-w-0 rounded-lg border border-line bg-surface p-4">
              <GateCard
                key={`${gateOf(shown)} ${isDone.size}`}
                entry={shown}
                isListed={isListed}
                readAt={open.dataUpdatedAt}
                onDone={() => done(shown.cursor)}
                onNext={() => setChosen(null)}
              />
            </div>
          </div>
        ) : null}
      </div>
    </div>
  );
}

/** The identity of a gate, independent of when it was opened. */
function gateOf(entry: InboxGate): string {
  return `${entry.inside ?? entry.executionId} ${entry.gateId}`;
}

function Choice(props: {
  name: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <span className="flex items-center gap-2 text-ink-soft">
      <label htmlFor={id}>{props.name}</label>
      <select
        id={id}
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
        className="h-8 max-w-72 rounded-md border border-line-strong bg-surface px-2 text-ink"
      >
        {props.options.map(([value, word]) => (
          <option key={value} value={value}>
            {word}
          </option>
        ))}
      </select>
    </span>
  );
}

function List(props: { gates: readonly InboxGate[]; shown: InboxGate; onChoose: (gate: InboxGate) => void }) {
  const workflowName = useWorkflowName();
  const { t, i18n } = useTranslation();
  // Only the first line is the question; the rest is shown with the gate.
  const questionIn = (one: InboxGate) =>
    questionOf(one, textIn(one.nodeName, i18n.language, one.nodeId), i18n.language, t).split("\n", 1)[0];
  if (props.gates.length === 0) return <p className="text-ink-soft">{t("inbox.none")}</p>;
  return (
    <div className="self-start">
      <ul className="divide-y divide-line overflow-x-hidden overflow-y-auto rounded-lg border border-line bg-surface max-md:max-h-60">
        {props.gates.map((one) => (
          <li key={one.cursor}>
            <button
              type="button"
              aria-current={one.cursor === props.shown.cursor}
              onClick={() => props.onChoose(one)}
              className="block w-full px-4 py-2.5 text-left hover:bg-sunken aria-[current=true]:bg-accent-soft"
            >
              <span className="block truncate font-medium">{questionIn(one)}</span>
              <span className="block truncate text-xs text-ink-faint">
                <bdi>{workflowName(one.workflowId)}</bdi> · {ago(one.openedAt, i18n.language)}
              </span>
              {one.deadline ? <Due at={one.deadline} /> : null}
            </button>
          </li>
        ))}
      </ul>
      {props.gates.length > 1 ? <p className="mt-2 text-xs text-ink-faint max-md:hidden">{t("inbox.keys")}</p> : null}
      {props.gates.length >= INBOX_MAX ? (
        <p className="mt-2 text-xs text-ink-faint">{t("inbox.most", { count: INBOX_MAX })}</p>
      ) : null}
    </div>
  );
}

function Due({ at }: { at: number }) {
  const { t, i18n } = useTranslation();
  const isOver = at < now();
  return (
    <span
      className={`block text-xs ${isOver ? "font-medium text-failed" : "text-waiting"}`}
      title={moment(at, i18n.language)}
    >
      {t(isOver ? "gate.overdue" : "gate.deadline", { when: ago(at, i18n.language) })}
    </span>
  );
}
