/** The conversation of a step: system and user messages, answers of models, tool calls and their results. */
import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleX, LoaderCircle, Wrench } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { type Call, callsOf, type ToolCall } from "@/api/queries";
import type { JsonObject } from "@/api/views";
import { money } from "@/components/amounts";
import { ErrorDetail } from "@/components/ErrorDetail";
import { span } from "@/components/times";
import { OpenInPlayground } from "@/features/playground/OpenInPlayground";
import { type LiveCall, type LiveOutput, useLive } from "./live";
import { messagesIn } from "./messages";
import { Section, Value } from "./Value";

/** The messages of a step as recorded, followed by live tool calls. */
export function Conversation(props: {
  execution: string;
  step: string;
  version: number;
  input: JsonObject | null | undefined;
  live: LiveOutput;
}) {
  const { t } = useTranslation();
  const liveCalls = useLive(props.live, props.step, "calls") ?? [];
  const recordedCalls = useQuery(callsOf(props.execution, props.step, props.version + liveCalls.length));
  const calls = recordedCalls.data ?? [];
  const asked = messagesIn(props.input);
  const recorded = calls.flatMap((call) => call.calls ?? []).length;
  const newCalls = liveCalls.slice(recorded);
  if (calls.length + newCalls.length + asked.length === 0) return null;
  return (
    <Section title={t("call.title")}>
      <ol className="space-y-2">
        {asked.map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the messages of a step never change
          <Message key={at} from={one.role}>
            <Value value={one.content} />
          </Message>
        ))}
        {calls.map((call) =>
          call.kind === "model" ? (
            <ModelMessage
              key={`${call.attempt} ${call.number}`}
              call={call}
              // The messages of the step are those of its first call; later ones also have results of tools.
              request={call === calls.find((one) => one.kind === "model") ? props.input : null}
            />
          ) : (
            <li key={`${call.attempt} ${call.number}`}>
              <ToolCard call={resultOf(call)} />
            </li>
          ),
        )}
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

const ROLES = {
  system: "border-line",
  user: "border-accent",
  assistant: "border-done",
} as const;

function Message(props: { from: string; about?: ReactNode; children: ReactNode }) {
  const { t } = useTranslation();
  const edge = ROLES[props.from as keyof typeof ROLES] ?? "border-line";
  return (
    <li className={`border-l-2 pl-2.5 ${edge}`}>
      <p className="flex flex-wrap items-baseline gap-x-2 text-xs text-ink-faint">
        <span className="font-semibold text-ink-soft">{t(`call.role.${props.from}`, props.from)}</span>
        {props.about}
      </p>
      {props.children}
    </li>
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

function ModelMessage({ call, request }: { call: Call; request: JsonObject | null | undefined }) {
  const { t } = useTranslation();
  const { usage } = call;
  const about = (
    <>
      <span className="font-mono">{call.model}</span>
      {call.attempt > 1 ? <span>{t("step.attempt", { attempt: call.attempt })}</span> : null}
      {usage ? (
        <span className="tabular-nums">
          {t("call.tokens", { input: usage.inputTokens, output: usage.outputTokens })}
          {usage.cacheReadTokens > 0 ? ` · ${t("call.cached", { count: usage.cacheReadTokens })}` : ""}
          {usage.costUsd === null ? "" : ` · ${money(usage.costUsd)}`}
        </span>
      ) : null}
      {call.tookMs === undefined ? null : <span className="tabular-nums">{span(call.tookMs / 1000)}</span>}
      {request ? <OpenInPlayground input={request} model={call.model ?? ""} /> : null}
    </>
  );
  return (
    <Message from="assistant" about={about}>
      {call.text ? <Value value={call.text} /> : null}
      {call.calls?.map((one, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the calls of one model response never change
        <ToolCard key={at} call={one} />
      ))}
    </Message>
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
