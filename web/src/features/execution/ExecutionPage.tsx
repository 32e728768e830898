import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useDeferredValue, useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { execution, executionDefinition } from "@/api/queries";
import { ENDED, type Execution, type ExecutionStatus } from "@/api/views";
import { PageFailed } from "@/components/PageFailed";
import { ScriptedBadge } from "@/components/Scripted";
import { Status } from "@/components/Status";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useTitle } from "@/components/useTitle";
import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { pictureOf } from "@/graph/model/picture";
import { Canvas } from "@/graph/render/Canvas";
import { Outline } from "@/graph/render/Outline";
import { Overlay, OverlayContext } from "@/graph/render/overlay";
import { textIn } from "@/i18n";
import { PresentPeople } from "../comments/PresentPeople";
import { Gates } from "../inbox/Gates";
import { NeededWorkers } from "../inbox/NeededWorkers";
import { Costs } from "./Costs";
import { EventList } from "./EventList";
import { ExecutionActions } from "./ExecutionActions";
import { ExecutionComments, placeOf } from "./ExecutionComments";
import { ExecutionNodes } from "./ExecutionNodes";
import { Figures } from "./Figures";
import { FocusPicker } from "./FocusPicker";
import { overlayOf } from "./focus";
import { type LogView, useExecutionLog } from "./log";
import { Outcome } from "./Outcome";
import { RelatedExecutions } from "./RelatedExecutions";
import { ReplayState } from "./replayState";
import { Scrubber } from "./Scrubber";
import { StepPanel } from "./StepPanel";
import { Timeline } from "./Timeline";
import { useRefresh } from "./useRefresh";
import { useTimePosition } from "./useTimePosition";
import { VIEWS, type View } from "./views";

export function ExecutionPage() {
  const { id } = useParams({ from: "/executions/$id" });
  // The key resets all state when the user opens another execution.
  return (
    <ExecutionNodes execution={id}>
      <OneExecution key={id} id={id} />
    </ExecutionNodes>
  );
}

function OneExecution({ id }: { id: string }) {
  const { t, i18n } = useTranslation();
  const log = useExecutionLog(id);
  const known = useQuery(execution(id));
  const definition = useQuery(executionDefinition(id));
  const [picked, setPicked] = useState<{ node: string; step: string | null } | null>(null);
  const [focus, setFocus] = useState<string | null>(null);
  const [view, setView] = useState<View>(useSearch({ from: "/executions/$id" }).view ?? "timeline");
  const [storedUpTo, setUpTo] = useTimePosition(id);
  const upTo = log.isRead ? storedUpTo : null;
  const deferredUpTo = useDeferredValue(upTo);
  const overlay = useMemo(() => new Overlay(), []);
  const replay = useMemo(() => new ReplayState(), []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the list of events is one object that grows; `version` changes with it
  const timeline = useMemo(
    () => (deferredUpTo === null ? { ...log.timeline } : replay.after(log.events, deferredUpTo)),
    [log.version, log.events, log.timeline, replay, deferredUpTo],
  );
  useEffect(() => overlay.show(...overlayOf(timeline, focus)), [overlay, timeline, focus]);
  useRefresh(id, log.timeline.seq, log.status);

  const picture = useMemo(
    () => (definition.data ? pictureOf(definition.data, i18n.language, t) : null),
    [definition.data, i18n.language, t],
  );
  const current = known.data;
  const name = current ? textIn(definition.data?.name, i18n.language, current.workflowId) : undefined;
  useTitle(name && current && definition.data ? `${name}, ${t(`status.${current.status}`)}` : undefined);
  if (log.error && log.events.length === 0)
    return <PageFailed error={log.error} name={id} back={{ to: "/executions", name: t("shell.executions") }} />;
  const row = upTo === null ? null : timeline.seq;
  const status = upTo === null ? (current?.status ?? log.status) : timeline.status;
  const pick = (node: string | null, step: string | null = null) => setPicked(node === null ? null : { node, step });
  const travel = (to: number) => setUpTo(to >= log.events.length ? null : to);
  const node = picked?.node ?? null;
  return (
    <div className="flex h-full flex-col max-lg:h-auto max-lg:min-h-full">
      <Header log={log} name={name} status={status} execution={current} id={id} place={picked?.step ?? node ?? ""}>
        {current ? <Figures execution={current} timeline={timeline} /> : null}
        <div className="ml-auto">
          {current ? <ExecutionActions execution={current} at={row} definition={definition.data} /> : null}
        </div>
      </Header>
      <div className="flex min-h-0 flex-1 max-lg:flex-col">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <FocusPicker timeline={timeline} focus={focus} onPick={setFocus} />
          <div className="min-h-56 flex-1 max-lg:h-72 max-lg:flex-none">
            {definition.isError ? (
              <div className="p-4">
                <ErrorMessage error={definition.error} />
              </div>
            ) : null}
            {picture ? (
              <Canvas picture={picture} overlay={overlay} picked={node} onPick={(one) => pick(one)} />
            ) : definition.isPending ? (
              <Loading />
            ) : null}
          </div>
          <Scrubber events={log.events} upTo={upTo} onMove={setUpTo} />
          <div className="flex h-64 min-h-0 shrink-0 flex-col border-t border-line bg-surface">
            <ViewTabs view={view} onView={setView} />
            <div className="min-h-0 flex-1">
              {view === "timeline" ? (
                <Timeline
                  timeline={timeline}
                  isLive={!ENDED.has(status) && upTo === null}
                  picked={node}
                  onPick={pick}
                />
              ) : view === "costs" ? (
                <Costs timeline={timeline} onPick={pick} />
              ) : view === "events" ? (
                <EventList execution={id} events={log.events} upTo={upTo} onPick={pick} onTravel={travel} />
              ) : view === "outline" && picture ? (
                <OverlayContext.Provider value={overlay}>
                  <Outline
                    picture={picture}
                    picked={node === null ? null : { kind: "node", id: node }}
                    onMove={(row) => row.box && pick(row.id)}
                    onPick={(row) => row.box && pick(row.id)}
                  />
                </OverlayContext.Provider>
              ) : view === "comments" ? (
                <ExecutionComments execution={id} place={picked} onPlace={(place) => pick(...placeOf(place))} />
              ) : (
                <RelatedExecutions execution={id} />
              )}
            </div>
          </div>
        </div>
        <aside className="w-full overflow-auto border-line bg-surface lg:w-[26rem] lg:border-l max-lg:border-t">
          {current ? (
            <div hidden={upTo !== null}>
              <NeededWorkers execution={current} className="border-b border-line p-4" />
              <Gates execution={current} className="border-b border-line p-4" onDone={log.refresh} />
            </div>
          ) : null}
          {picked ? (
            <StepPanel
              key={`${picked.node} ${picked.step}`}
              execution={id}
              node={picked.node}
              step={picked.step}
              focus={focus}
              timeline={timeline}
              live={log.live}
              definition={definition.data}
            />
          ) : current ? (
            <Outcome execution={current} upTo={row} onPick={pick} />
          ) : (
            <Loading />
          )}
        </aside>
      </div>
    </div>
  );
}

function Header(props: {
  log: LogView;
  id: string;
  name: string | undefined;
  status: ExecutionStatus;
  execution: Execution | undefined;
  children: ReactNode;
  /** The selected node or step; empty: none. */
  place: string;
}) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const { log, execution } = props;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-surface px-4 py-2">
      <h1 className="min-w-0 font-semibold wrap-anywhere">
        {execution ? (
          <Link
            to="/workflows/$id"
            params={{ id: execution.workflowId }}
            className="line-clamp-2 min-h-6 py-0.5 hover:underline"
          >
            <bdi>{props.name}</bdi>
          </Link>
        ) : (
          props.id
        )}
      </h1>
      <Status status={props.status} />
      <PresentPeople
        subject={{ kind: "execution", id: props.id }}
        place={props.place}
        nameOf={(place) => stepName(place, nodeName)}
      />
      <ScriptedBadge scripted={execution?.scripted} />
      {log.isRead ? null : (
        <span role="status" className="text-xs text-ink-faint tabular-nums">
          {t("execution.reading", { count: log.events.length })}
        </span>
      )}
      {log.connection === "away" && log.isRead && !ENDED.has(log.status) ? (
        <span role="status" className="text-xs text-waiting">
          {t("execution.disconnected")}
        </span>
      ) : null}
      {props.children}
    </div>
  );
}

function ViewTabs({ view, onView }: { view: View; onView: (view: View) => void }) {
  const { t } = useTranslation();
  return (
    <div
      role="tablist"
      aria-label={t("execution.views")}
      className="flex gap-1 overflow-x-auto border-b border-line px-3"
    >
      {VIEWS.map((one) => (
        <button
          key={one}
          type="button"
          role="tab"
          aria-selected={view === one}
          onClick={() => onView(one)}
          className={`border-b-2 px-2 py-1.5 font-medium ${view === one ? "border-accent text-accent" : "border-transparent text-ink-soft"}`}
        >
          {t(`execution.${one}`)}
        </button>
      ))}
    </div>
  );
}
