import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Ban, GitFork, Pause, Play, RotateCcw } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { control, execution, executionDefinition, fork, type Verb } from "@/api/queries";
import { ENDED, type Execution } from "@/api/views";
import { Button } from "@/components/Button";
import { span } from "@/components/instants";
import { Status } from "@/components/Status";
import { Failed, Loading } from "@/components/Told";
import { Canvas } from "@/graph/Canvas";
import { Overlay } from "@/graph/overlay";
import { pictureOf } from "@/graph/picture";
import { textIn } from "@/i18n";
import { GateForm } from "../inbox/GateForm";
import { EventList } from "./EventList";
import { useExecutionLog } from "./log";
import { Outcome } from "./Outcome";
import { Scrubber } from "./Scrubber";
import { StepPanel } from "./StepPanel";
import { lookOf, type Story, storyOf } from "./story";
import { Timeline } from "./Timeline";

const VIEWS = ["timeline", "events"] as const;
type View = (typeof VIEWS)[number];

export function ExecutionPage() {
  const { id } = useParams({ from: "/executions/$id" });
  // Another execution is another page: nothing of this one stays.
  return <OneExecution key={id} id={id} />;
}

function OneExecution({ id }: { id: string }) {
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const log = useExecutionLog(id);
  const known = useQuery(execution(id));
  const native = useQuery(executionDefinition(id));
  const [picked, setPicked] = useState<string | null>(null);
  const [view, setView] = useState<View>("timeline");
  const [upTo, setUpTo] = useState<number | null>(null);
  const overlay = useMemo(() => new Overlay(), []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the list of events is one object that grows; `version` says so
  const story = useMemo(
    () => (upTo === null ? { ...log.story } : storyOf(log.events, upTo)),
    [log.version, log.events, log.story, upTo],
  );
  useEffect(() => overlay.show(...overlayOf(story)), [overlay, story]);
  // What only the server knows (open gates, output) is read again when the journal moved.
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again per row
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ["execution", id], exact: true });
    void client.invalidateQueries({ queryKey: ["inbox"] });
  }, [client, id, log.story.seq]);

  const picture = useMemo(
    () => (native.data ? pictureOf(native.data, i18n.language) : null),
    [native.data, i18n.language],
  );
  if (log.error && log.events.length === 0)
    return (
      <div className="p-6">
        <Failed why={log.error} />
      </div>
    );
  const now = known.data;
  const status = upTo === null ? (now?.status ?? log.status) : story.status;
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-surface px-4 py-2">
        <h1 className="min-w-0 font-semibold break-words">
          {now ? (
            <Link to="/workflows/$id" params={{ id: now.workflowId }} className="hover:underline">
              <bdi>{textIn(native.data?.name, i18n.language, now.workflowId)}</bdi>
            </Link>
          ) : (
            id
          )}
        </h1>
        <Status status={status} />
        {log.connection === "away" && log.isRead && !ENDED.has(log.status) ? (
          <span role="status" className="text-xs text-waiting">
            {t("execution.away")}
          </span>
        ) : null}
        {now ? <Figures execution={now} story={story} /> : null}
        <div className="ml-auto">{now ? <Verbs execution={now} upTo={upTo} story={story} /> : null}</div>
      </div>
      <div className="flex min-h-0 flex-1 max-lg:flex-col">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <div className="min-h-56 flex-1">
            {native.isError ? (
              <div className="p-4">
                <Failed why={native.error} />
              </div>
            ) : null}
            {picture ? (
              <Canvas picture={picture} overlay={overlay} picked={picked} onPick={setPicked} />
            ) : native.isPending ? (
              <Loading />
            ) : null}
          </div>
          <Scrubber events={log.events} upTo={upTo} onMove={setUpTo} />
          <div className="flex h-64 min-h-0 shrink-0 flex-col border-t border-line bg-surface">
            <div role="tablist" aria-label={t("execution.views")} className="flex gap-1 border-b border-line px-3">
              {VIEWS.map((one) => (
                <button
                  key={one}
                  type="button"
                  role="tab"
                  aria-selected={view === one}
                  onClick={() => setView(one)}
                  className={`border-b-2 px-2 py-1.5 font-medium ${view === one ? "border-accent text-accent" : "border-transparent text-ink-soft"}`}
                >
                  {t(`execution.${one}`)}
                </button>
              ))}
            </div>
            <div className="min-h-0 flex-1">
              {view === "timeline" ? (
                <Timeline
                  story={story}
                  isLive={!ENDED.has(status) && upTo === null}
                  picked={picked}
                  onPick={setPicked}
                />
              ) : (
                <EventList events={log.events} upTo={upTo} onPick={setPicked} />
              )}
            </div>
          </div>
        </div>
        <aside className="w-full overflow-auto border-line bg-surface lg:w-[26rem] lg:border-l max-lg:max-h-[50vh] max-lg:border-t">
          {upTo === null
            ? now?.waiting.map((gate) => (
                <div key={gate.gateId} className="border-b border-line p-4">
                  <GateForm execution={id} gate={gate} onDone={log.refresh} />
                </div>
              ))
            : null}
          {picked ? (
            <StepPanel node={picked} story={story} live={log.live} definition={native.data} />
          ) : now ? (
            <Outcome execution={now} upTo={upTo === null ? null : story.seq} />
          ) : (
            <Loading />
          )}
        </aside>
      </div>
    </div>
  );
}

function overlayOf(story: Story): Parameters<Overlay["show"]> {
  const boxes = new Map();
  for (const [node, about] of story.nodes) {
    const look = lookOf(about);
    if (look === null) continue;
    const over = about.done + about.failed + about.cancelled;
    const all = about.steps.length;
    boxes.set(node, { look, count: all > 1 ? `${over}/${all}` : "", round: about.round });
  }
  return [boxes, story.taken];
}

function Figures({ execution: one, story }: { execution: Execution; story: Story }) {
  const { t } = useTranslation();
  const { usage } = one;
  return (
    <dl className="flex flex-wrap gap-x-3 text-xs text-ink-faint">
      <Figure name={t("execution.duration")} value={span(story.to - story.from)} />
      <Figure name={t("execution.steps")} value={String(one.steps)} />
      <Figure name={t("execution.tokens")} value={`${usage.inputTokens} → ${usage.outputTokens}`} />
      {usage.costUsd === null ? null : <Figure name={t("execution.cost")} value={`$${usage.costUsd.toFixed(4)}`} />}
      {one.model ? <Figure name={t("execution.model")} value={one.model} /> : null}
    </dl>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div className="flex gap-1">
      <dt>{name}</dt>
      <dd className="text-ink-soft tabular-nums">{value}</dd>
    </div>
  );
}

const OFFERED: Record<Execution["status"], readonly Verb[]> = {
  pending: ["cancel"],
  running: ["pause", "cancel"],
  waiting: ["pause", "cancel"],
  paused: ["resume", "cancel"],
  interrupted: ["resume", "cancel"],
  completed: [],
  failed: ["retry"],
  cancelled: [],
};
const ICONS = { pause: Pause, resume: Play, cancel: Ban, retry: RotateCcw } as const;

function Verbs({ execution: one, upTo, story }: { execution: Execution; upTo: number | null; story: Story }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const act = useMutation({
    mutationFn: (verb: Verb) => control(one.executionId, verb),
    onSuccess: (next) => client.setQueryData(["execution", one.executionId], next),
  });
  const copy = useMutation({
    mutationFn: () => fork(one.executionId, upTo === null ? {} : { at: story.seq }),
    onSuccess: ({ executionId }) => navigate({ to: "/executions/$id", params: { id: executionId } }),
  });
  return (
    <div className="flex flex-wrap items-center gap-2">
      {OFFERED[one.status].map((verb) => {
        const Icon = ICONS[verb];
        return (
          <Button
            key={verb}
            kind={verb === "cancel" ? "danger" : "plain"}
            onClick={() => act.mutate(verb)}
            disabled={act.isPending}
          >
            <Icon className="size-4" /> {t(`execution.${verb}`)}
          </Button>
        );
      })}
      <Button onClick={() => copy.mutate()} disabled={copy.isPending} title={t("execution.forkAbout")}>
        <GitFork className="size-4" /> {upTo === null ? t("execution.fork") : t("execution.forkHere")}
      </Button>
      {act.isError ? <Failed why={act.error} /> : null}
      {copy.isError ? <Failed why={copy.error} /> : null}
    </div>
  );
}
