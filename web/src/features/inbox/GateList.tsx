/** The list of open gates beside the selected one, and the filters above it. */
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { INBOX_MAX } from "@/api/queries";
import type { InboxGate } from "@/api/views";
import { now } from "@/clock";
import { ago, moment } from "@/components/times";
import { useWorkflowName } from "@/components/useWorkflowName";
import { textIn } from "@/i18n";
import { PARTIAL_RUN_PREFIX } from "../execution/partialRuns";
import { questionOf } from "./question";

export function Choice(props: {
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

export function GateList(props: {
  gates: readonly InboxGate[];
  shown: InboxGate;
  onChoose: (gate: InboxGate) => void;
}) {
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
                <bdi>{workflowName(one.workflowId)}</bdi> ·{" "}
                {one.executionId.startsWith(PARTIAL_RUN_PREFIX) ? `${t("executions.trial")} · ` : ""}
                {ago(one.openedAt, i18n.language)}
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
