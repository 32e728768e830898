import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Definition, Json } from "@/api/views";
import { span } from "@/components/instants";
import { Status } from "@/components/Status";
import { textIn } from "@/i18n";
import type { StepStory, Story } from "./story";
import { Section, Value } from "./Value";

/** What a node did: its steps, and of one of them what it was given, said and changed. */
export function StepPanel(props: {
  node: string;
  story: Story;
  live: ReadonlyMap<string, string>;
  definition: Definition | undefined;
}) {
  const { t, i18n } = useTranslation();
  const about = props.story.nodes.get(props.node);
  const defined = props.definition?.nodes.find((one) => one.id === props.node);
  const [chosen, setChosen] = useState<string | null>(null);
  const steps = about?.steps ?? [];
  const step = props.story.steps.get(chosen && steps.includes(chosen) ? chosen : (steps.at(-1) ?? ""));
  return (
    <div className="p-4">
      <h2 className="font-semibold break-words">
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
            {steps.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      {step ? <OneStep step={step} saying={props.live.get(step.step)} /> : <p className="mt-3">{t("step.none")}</p>}
    </div>
  );
}

function OneStep({ step, saying }: { step: StepStory; saying: string | undefined }) {
  const { t } = useTranslation();
  const first = step.spans[0];
  const last = step.spans.at(-1);
  const usage = step.usage;
  const said = step.said as { text?: Json } | null | undefined;
  return (
    <div className="mt-3">
      <p className="flex flex-wrap items-center gap-2">
        <Status status={step.status} />
        {first && last?.to ? <span className="text-ink-soft">{span(last.to - first.from)}</span> : null}
        {step.attempt > 1 ? <span className="text-waiting">{t("step.attempt", { attempt: step.attempt })}</span> : null}
        {step.cached ? <span className="text-ink-soft">{t("step.cached")}</span> : null}
        {usage?.model_calls ? (
          <span className="text-ink-soft tabular-nums">
            {t("step.usage", {
              calls: usage.model_calls,
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
          <p className="break-words text-failed">{step.failure.message}</p>
          {step.failure.hint ? <p className="text-ink-soft">{step.failure.hint}</p> : null}
        </div>
      ) : null}
      {saying ? (
        <Section title={t("step.saying")}>
          <p className="whitespace-pre-wrap" aria-live="polite">
            {saying}
          </p>
        </Section>
      ) : null}
      {step.result === undefined ? null : (
        <Section title={t("step.result")}>
          <Value value={step.result} />
        </Section>
      )}
      {said?.text && said.text !== step.result ? (
        <Section title={t("step.said")}>
          <Value value={said.text} />
        </Section>
      ) : null}
      {step.writes.length > 0 ? (
        <Section title={t("step.changed")}>
          <dl className="space-y-2">
            {step.writes.map((write) => (
              <div key={write.path.join(".")}>
                <dt className="font-mono text-xs text-ink-soft">
                  {write.path.join(".")} {write.reduce === "set" ? "" : `(${write.reduce})`}
                </dt>
                <dd>
                  <Value value={write.value} />
                </dd>
              </div>
            ))}
          </dl>
        </Section>
      ) : null}
      {step.input ? (
        <Section title={t("step.input")}>
          <Value value={step.input} />
        </Section>
      ) : null}
    </div>
  );
}
