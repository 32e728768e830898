import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { executionAt } from "@/api/queries";
import type { Definition, Json } from "@/api/views";
import { ErrorDetail } from "@/components/ErrorDetail";
import { Status } from "@/components/Status";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { span } from "@/components/times";
import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { textIn } from "@/i18n";
import { Changes } from "@/values/Changes";
import { changesIn, valueAt } from "@/values/changes";
import { Conversation } from "./Conversation";
import { Evidence } from "./Evidence";
import { reloadEvents } from "./eventReload";
import { isInFocus } from "./focus";
import { type LiveOutput, useLive } from "./live";
import { messagesIn, otherInput } from "./messages";
import { type ExecutionTimeline, type StepRecord, timelineOf } from "./timelineModel";
import { Section, Value } from "./Value";

/** The list offers this many steps around the selected one; the timeline and the event list have the others. */
const STEPS_LISTED_MAX = 200;

/** The steps of a node, and the input, output and writes of one of them. */
export function StepPanel(props: {
  execution: string;
  node: string;
  /** The step that the user selected, if any. */
  step: string | null;
  focus: string | null;
  timeline: ExecutionTimeline;
  live: LiveOutput;
  definition: Definition | undefined;
}) {
  const { t, i18n } = useTranslation();
  const nodeName = useNodeName();
  const about = props.timeline.nodes.get(props.node);
  const defined = props.definition?.nodes.find((one) => one.id === props.node);
  const [chosen, setChosen] = useState<string | null>(null);
  const all = about?.steps ?? [];
  const steps = props.focus
    ? all.filter((one) => isInFocus(props.timeline.steps.get(one) as StepRecord, props.focus))
    : all;
  const wanted = [chosen, props.step].find((one) => one !== null && steps.includes(one));
  const step = props.timeline.steps.get(wanted ?? steps.at(-1) ?? "");
  return (
    <div className="p-4">
      <h2 className="line-clamp-3 font-semibold wrap-anywhere">
        <bdi>{textIn(defined?.name, i18n.language, props.node)}</bdi>
      </h2>
      <p className="text-ink-faint">
        {defined ? t(`node.${defined.type}`, defined.type) : null} ·{" "}
        <span className="font-mono text-xs">{props.node}</span>
      </p>
      {steps.length > 1 ? (
        <label className="mt-3 flex items-center gap-2">
          <span className="text-ink-soft">{t("step.which", { count: steps.length })}</span>
          <select
            value={step?.step}
            onChange={(event) => setChosen(event.target.value)}
            className="h-8 min-w-0 flex-1 rounded-md border border-line-strong bg-surface px-2"
          >
            {around(steps, step?.step).map((one) => (
              <option key={one} value={one}>
                {stepName(one, nodeName)}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      {step ? (
        <LoadedStep key={step.step} execution={props.execution} step={step} live={props.live} />
      ) : (
        <p className="mt-3">{t("step.none")}</p>
      )}
    </div>
  );
}

/** Return the steps around the given one, or the last steps if none is given. */
function around(steps: string[], step: string | undefined): string[] {
  const at = step === undefined ? steps.length : steps.lastIndexOf(step);
  const from = Math.max(0, Math.min(at - STEPS_LISTED_MAX / 2, steps.length - STEPS_LISTED_MAX));
  return steps.slice(from, from + STEPS_LISTED_MAX);
}

/** Load the data of an old step again: memory holds only its summary. */
function LoadedStep(props: { execution: string; step: StepRecord; live: LiveOutput }) {
  const { execution, step } = props;
  const read = useQuery({
    queryKey: ["execution", execution, "step", step.step, step.eventPositions.length],
    queryFn: async () => timelineOf(await reloadEvents(execution, step.eventPositions)).steps.get(step.step) ?? null,
    enabled: step.isSummary === true,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (step.isSummary && read.isError) return <ErrorMessage error={read.error} onRetry={() => void read.refetch()} />;
  if (step.isSummary && !read.isSuccess) return <Loading />;
  return <StepDetail execution={execution} step={read.data ?? step} live={props.live} />;
}

function StepDetail({ execution, step, live }: { execution: string; step: StepRecord; live: LiveOutput }) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const first = step.spans[0];
  const last = step.spans.at(-1);
  const usage = step.usage;
  // Messages are part of the conversation.
  const input = step.input && messagesIn(step.input).length > 0 ? otherInput(step.input) : step.input;
  const response = step.response as { text?: Json } | null | undefined;
  return (
    <div className="mt-3">
      <p className="flex flex-wrap items-center gap-2">
        <Status status={step.status} />
        {first && last?.to ? <span className="text-ink-soft">{span(last.to - first.from)}</span> : null}
        {step.attempt > 1 ? <span className="text-waiting">{t("step.attempt", { attempt: step.attempt })}</span> : null}
        {step.round ? (
          <span className="text-ink-soft">{t("step.round", { round: stepName(step.round, nodeName) })}</span>
        ) : null}
        {step.cached ? <span className="text-ink-soft">{t("step.cached")}</span> : null}
        <LiveTask step={step.step} live={live} />
        {usage?.model_calls ? (
          <span className="text-ink-soft tabular-nums">
            {t("step.usage", {
              count: usage.model_calls,
              input: usage.input_tokens ?? 0,
              output: usage.output_tokens ?? 0,
            })}
          </span>
        ) : null}
      </p>
      {step.child ? (
        <Link to="/executions/$id" params={{ id: step.child }} className="mt-2 inline-block text-accent underline">
          {t("step.child")}
        </Link>
      ) : null}
      {step.failure ? (
        <div className="mt-3 rounded-md border border-failed/40 bg-failed-soft p-2.5">
          <ErrorDetail
            code={step.failure.code}
            message={step.failure.message}
            hint={step.failure.hint}
            look="text-failed"
          />
          <Evidence failure={step.failure} />
        </div>
      ) : null}
      <LiveThought step={step.step} live={live} />
      <LiveText step={step.step} live={live} />
      {step.result === undefined ? null : (
        <Section title={t("step.result")}>
          <Value value={step.result} />
        </Section>
      )}
      {response?.text && response.text !== step.result ? (
        <Section title={t("step.said")}>
          <Value value={response.text} />
        </Section>
      ) : null}
      {step.printed ? (
        <Section title={t("step.printed")}>
          <Value value={step.printed} look="code" />
        </Section>
      ) : null}
      {step.writes.length > 0 ? <StepWrites execution={execution} step={step} /> : null}
      <Conversation
        execution={execution}
        step={step.step}
        version={step.eventPositions.length / 2}
        input={step.input}
        live={live}
      />
      {input ? (
        <Section title={t("step.input")}>
          <Value value={input} />
        </Section>
      ) : null}
    </div>
  );
}

function LiveTask(props: { step: string; live: LiveOutput }) {
  const { t } = useTranslation();
  const task = useLive(props.live, props.step, "task");
  return task ? <span className="text-ink-soft">{t("step.task", { task })}</span> : null;
}

function LiveThought(props: { step: string; live: LiveOutput }) {
  const { t } = useTranslation();
  const thought = useLive(props.live, props.step, "thought");
  if (!thought) return null;
  return (
    <details className="mt-3 text-ink-soft">
      <summary className="min-h-6 cursor-pointer">{t("step.thinking")}</summary>
      <p className="mt-1 max-h-48 overflow-auto whitespace-pre-wrap">{thought}</p>
    </details>
  );
}

function LiveText(props: { step: string; live: LiveOutput }) {
  const { t } = useTranslation();
  const text = useLive(props.live, props.step, "text");
  if (!text) return null;
  return (
    <Section title={t("step.saying")}>
      <p className="break-words whitespace-pre-wrap" aria-live="polite">
        {text}
      </p>
    </Section>
  );
}

/** The values that a step wrote; for writes into the root scope, with the values before. */
function StepWrites({ execution, step }: { execution: string; step: StepRecord }) {
  const { t } = useTranslation();
  const row = step.eventPositions.at(-2) ?? 1;
  const isRoot = step.scope.length === 0;
  const before = useQuery({ ...executionAt(execution, row - 1), enabled: isRoot && row > 1 });
  const changes = step.writes.flatMap((write) => {
    const was = valueAt(before.data?.state, write.path);
    if (write.reduce !== "set" || was === undefined)
      return [{ path: write.path, before: undefined, after: write.value }];
    return changesIn(was, write.value).map((change) => ({ ...change, path: [...write.path, ...change.path] }));
  });
  return (
    <Section title={t("step.changed")}>
      <Changes changes={changes} />
    </Section>
  );
}
