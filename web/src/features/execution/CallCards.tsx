import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleX, LoaderCircle, Wrench } from "lucide-react";
import { useTranslation } from "react-i18next";
import { type Call, callsOf, type ToolCall } from "@/api/queries";
import { money } from "@/components/amounts";
import { ErrorDetail } from "@/components/ErrorDetail";
import { type LiveCall, type LiveOutput, useLive } from "./live";
import { Section, Value } from "./Value";

/** The recorded model and tool calls of a step, followed by the live ones. */
export function CallCards(props: { execution: string; step: string; version: number; live: LiveOutput }) {
  const { t } = useTranslation();
  const liveCalls = useLive(props.live, props.step, "calls") ?? [];
  const recordedCalls = useQuery(callsOf(props.execution, props.step, props.version + liveCalls.length));
  const calls = recordedCalls.data ?? [];
  const recorded = calls.flatMap((call) => call.calls ?? []).length;
  const newCalls = liveCalls.slice(recorded);
  if (calls.length + newCalls.length === 0) return null;
  return (
    <Section title={t("call.title")}>
      <ol className="space-y-2">
        {calls.map((call) => (
          <li key={`${call.attempt} ${call.number}`}>
            {call.kind === "model" ? <ModelCard call={call} /> : <ToolCard call={{ ...resultOf(call) }} />}
          </li>
        ))}
        {newCalls.map((call, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: calls are only ever appended
          <li key={at}>
            <LiveCard call={call} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

function resultOf(call: Call): ToolCall {
  return {
    tool: "",
    arguments: null,
    done: true,
    ...(call.result === undefined ? {} : { result: call.result }),
    ...(call.error ? { error: call.error } : {}),
  };
}

function ModelCard({ call }: { call: Call }) {
  const { t } = useTranslation();
  const { usage } = call;
  return (
    <div className="rounded-md border border-line p-2">
      <p className="flex flex-wrap gap-x-2 text-xs text-ink-faint">
        <span className="font-mono">{call.model}</span>
        {call.attempt > 1 ? <span>{t("step.attempt", { attempt: call.attempt })}</span> : null}
        {usage ? (
          <span className="tabular-nums">
            {t("call.tokens", { input: usage.inputTokens, output: usage.outputTokens })}
            {usage.costUsd === null ? null : ` · ${money(usage.costUsd)}`}
          </span>
        ) : null}
      </p>
      {call.text ? <p className="mt-1 max-h-48 overflow-auto break-words whitespace-pre-wrap">{call.text}</p> : null}
      {call.calls?.map((one, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the calls of one model response never change
        <ToolCard key={at} call={one} />
      ))}
    </div>
  );
}

function ToolCard({ call }: { call: ToolCall }) {
  const { t } = useTranslation();
  return (
    <details className="mt-1.5 rounded-md bg-sunken">
      <summary className="flex min-h-7 cursor-pointer items-center gap-1.5 px-2">
        <Wrench className="size-3.5 shrink-0 text-ink-faint" aria-hidden />
        <span className="min-w-0 truncate font-mono text-xs">{call.tool || t("call.result")}</span>
        <CallStatus ok={call.done ? !call.error : undefined} />
      </summary>
      <div className="space-y-1 px-2 pb-2">
        {call.arguments === null ? null : (
          <>
            <p className="text-xs text-ink-faint">{t("call.arguments")}</p>
            <Value value={call.arguments} />
          </>
        )}
        {call.error ? (
          <p>
            <ErrorDetail code={call.error.code} message={call.error.message} look="text-failed" />
            <span className="font-mono text-xs text-ink-faint">{call.error.code}</span>
          </p>
        ) : call.done ? (
          <>
            <p className="text-xs text-ink-faint">{t("call.result")}</p>
            <Value value={call.result} />
          </>
        ) : null}
      </div>
    </details>
  );
}

function LiveCard({ call }: { call: LiveCall }) {
  return (
    <p className="flex min-h-7 items-center gap-1.5 rounded-md bg-sunken px-2">
      <Wrench className="size-3.5 text-ink-faint" aria-hidden />
      <span className="min-w-0 truncate font-mono text-xs">{call.tool}</span>
      <CallStatus ok={call.ok} />
    </p>
  );
}

function CallStatus({ ok }: { ok: boolean | undefined }) {
  const { t } = useTranslation();
  if (ok === undefined)
    return (
      <span className="ml-auto flex items-center gap-1 text-xs text-running">
        <LoaderCircle className="size-3.5 animate-spin" aria-hidden /> {t("call.running")}
      </span>
    );
  const Icon = ok ? CircleCheck : CircleX;
  return (
    <span className={`ml-auto flex items-center gap-1 text-xs ${ok ? "text-done" : "text-failed"}`}>
      <Icon className="size-3.5" aria-hidden /> {t(ok ? "call.done" : "call.failed")}
    </span>
  );
}
