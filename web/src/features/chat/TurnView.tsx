import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Paperclip, Play, RotateCcw } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { control, execution, executionDefinition, type Verb } from "@/api/queries";
import { type Definition, ENDED, type Execution, type ExecutionEntry, type Failure } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorDetail } from "@/components/ErrorDetail";
import { ScriptedOutput } from "@/components/Scripted";
import { Status, StatusIcon } from "@/components/Status";
import { ErrorMessage } from "@/components/StatusMessage";
import { textIn } from "@/i18n";
import { useLiveOutput } from "../execution/live";
import { useExecutionLog } from "../execution/log";
import { Value } from "../execution/Value";
import { Gates } from "../inbox/Gates";
import { Calls } from "./Calls";
import { filesIn, isConversational, messageIn, type Part, partsOf } from "./parts";

const Markdown = lazy(() => import("@/components/Markdown"));

/** One turn: the message, the working nodes with their output, open gates, and the end. */
export function TurnView(props: {
  entry: ExecutionEntry;
  field: string;
  /** The workflow that a mention addressed, if it is not that of the conversation. */
  to: string | null;
  onRetry: (words: string) => void;
}) {
  const { t } = useTranslation();
  const id = props.entry.executionId;
  const client = useQueryClient();
  const log = useExecutionLog(id);
  const liveVersion = useLiveOutput(log.live);
  const known = useQuery(execution(id));
  const native = useQuery(executionDefinition(id));
  // Refetch what only the server computes (open gates, output) when the journal grows.
  // biome-ignore lint/correctness/useExhaustiveDependencies: refetch per row
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ["execution", id], exact: true });
  }, [client, id, log.timeline.seq]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list of events and the live output are objects that are updated in place; their versions change
  const parts = useMemo(
    () => (native.data ? partsOf(native.data, log.timeline, log.events, log.live) : []),
    [native.data, log.version, liveVersion],
  );
  const now = known.data;
  const why = log.error ?? known.error ?? native.error;
  if (why) return <ErrorMessage error={why} />;
  const words = now ? messageIn(now.input, props.field) : "";
  return (
    <article aria-label={words.slice(0, 80)} className="space-y-3">
      <ScriptedOutput scripted={now?.scripted} />
      {now ? <Transcript words={words} files={filesIn(now.input)} to={props.to} /> : null}
      <Steps parts={parts} definition={native.data} isOver={ENDED.has(log.status)} id={id} />
      {parts.map((part) => (
        <PartView key={part.step} part={part} isAlone={countWriting(parts) < 2} />
      ))}
      {log.connection === "away" && log.isRead && !ENDED.has(log.status) ? (
        <p role="status" className="text-sm text-waiting">
          {t("execution.disconnected")}
        </p>
      ) : null}
      {now && native.data ? <Outcome now={now} definition={native.data} parts={parts} /> : null}
      {now ? (
        <Gates execution={now} className="rounded-lg border border-waiting/50 bg-surface p-4" onDone={log.refresh} />
      ) : null}
      {now ? <Ended now={now} onRetry={() => props.onRetry(words)} onDone={log.refresh} /> : null}
      {now === undefined ? <p className="text-ink-faint">{t("loading.inProgress")}</p> : null}
    </article>
  );
}

function countWriting(parts: readonly Part[]): number {
  return new Set(parts.filter((part) => part.text).map((part) => part.node.id)).size;
}

export function Transcript(props: { words: string; files: readonly string[]; to: string | null }) {
  return (
    <div className="ml-auto w-fit max-w-[85%] rounded-lg rounded-br-sm bg-accent-soft px-3 py-2">
      {props.to ? <p className="text-xs font-medium text-accent">@{props.to}</p> : null}
      <p className="break-words whitespace-pre-wrap">
        <bdi>{props.words}</bdi>
      </p>
      {props.files.map((name) => (
        <p key={name} className="flex items-center gap-1 text-xs text-ink-soft">
          <Paperclip className="size-3.5" aria-hidden /> <bdi>{name}</bdi>
        </p>
      ))}
    </div>
  );
}

/** The working nodes: expanded while the turn runs, collapsed afterwards. */
function Steps(props: { parts: readonly Part[]; definition: Definition | undefined; isOver: boolean; id: string }) {
  const { t, i18n } = useTranslation();
  const { parts, isOver } = props;
  const busy = parts.filter((part) => part.status === "running" || part.status === "pending");
  const nameOf = (part: Part) => textIn(part.node.name, i18n.language, part.node.id);
  if (parts.length === 0 && isOver) return null;
  return (
    <details className="text-sm text-ink-soft" open={false}>
      <summary className="flex min-h-6 w-fit cursor-pointer items-center gap-1.5 rounded">
        {!isOver && busy.length > 0 ? (
          <>
            <StatusIcon status="running" />
            <bdi>{t("chat.atWork", { who: [...new Set(busy.map(nameOf))].join(", ") })}</bdi>
          </>
        ) : (
          t("chat.steps", { count: parts.length })
        )}
      </summary>
      <ol className="mt-1 space-y-0.5 border-l-2 border-line pl-3">
        {parts.map((part) => (
          <li key={part.step} className="flex items-center gap-1.5">
            <StatusIcon status={part.status} className="size-3.5" />
            <bdi className="min-w-0 break-words">{nameOf(part)}</bdi>
            <span className="sr-only">{t(`status.${part.status}`)}</span>
          </li>
        ))}
        <li>
          <Link to="/executions/$id" params={{ id: props.id }} className="text-accent underline">
            {t("chat.wholeStory")}
          </Link>
        </li>
      </ol>
    </details>
  );
}

function PartView({ part, isAlone }: { part: Part; isAlone: boolean }) {
  const { i18n } = useTranslation();
  if (!part.text && part.calls.length === 0) return null;
  return (
    <section className="max-w-[92%] space-y-2">
      <Calls calls={part.calls} />
      {part.text ? (
        <div>
          {isAlone ? null : (
            <p className="text-xs font-medium text-ink-faint">
              <bdi>{textIn(part.node.name, i18n.language, part.node.id)}</bdi>
            </p>
          )}
          <div aria-busy={part.isLive}>
            <Rich text={part.text} />
          </div>
        </div>
      ) : null}
    </section>
  );
}

function Rich({ text }: { text: string }) {
  return (
    <Suspense fallback={<p className="break-words whitespace-pre-wrap">{text}</p>}>
      <Markdown text={text} />
    </Suspense>
  );
}

/** The output of a workflow that is not conversational. */
function Outcome({ now, definition, parts }: { now: Execution; definition: Definition; parts: readonly Part[] }) {
  if (now.status !== "completed" || now.output === null) return null;
  if (isConversational(definition) && parts.some((part) => part.text)) return null;
  const { output } = now;
  const only =
    typeof output === "object" && !Array.isArray(output) && Object.keys(output).length === 1
      ? Object.values(output)[0]
      : output;
  return (
    <div className="max-w-[92%]">{typeof only === "string" ? <Rich text={only} /> : <Value value={output} />}</div>
  );
}

const GOES_ON: Partial<Record<Execution["status"], Verb>> = {
  paused: "resume",
  interrupted: "resume",
  stopped: "resume",
  failed: "retry",
};

function Ended(props: { now: Execution; onRetry: () => void; onDone: () => void }) {
  const { t } = useTranslation();
  const { now } = props;
  const client = useQueryClient();
  const verb = GOES_ON[now.status];
  const act = useMutation({
    mutationFn: (which: Verb) => control(now.executionId, which),
    onSuccess: (next) => {
      client.setQueryData(["execution", now.executionId], next);
      props.onDone();
    },
  });
  if (!verb && now.status !== "cancelled") return null;
  const Icon = verb === "resume" ? Play : RotateCcw;
  return (
    <div className="space-y-2">
      {now.status === "failed" ? now.errors.slice(-1).map((one) => <TurnError key={one.message} why={one} />) : null}
      <div className="flex flex-wrap items-center gap-2">
        <Status status={now.status} />
        {verb ? (
          <Button onClick={() => act.mutate(verb)} disabled={act.isPending}>
            <Icon className="size-4" aria-hidden /> {t(verb === "retry" ? "chat.retry" : "chat.goOn")}
          </Button>
        ) : null}
        {now.status === "cancelled" || now.status === "failed" ? (
          <Button kind="quiet" onClick={props.onRetry}>
            {t("chat.again")}
          </Button>
        ) : null}
      </div>
      {act.isError ? <ErrorMessage error={act.error} /> : null}
    </div>
  );
}

function TurnError({ why }: { why: Failure }) {
  return (
    <div role="alert" className="rounded-md border border-failed/40 bg-failed-soft p-3">
      <ErrorDetail code={why.code} message={why.message} hint={why.hint} look="text-failed" />
    </div>
  );
}
