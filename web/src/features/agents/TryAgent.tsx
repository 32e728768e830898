import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { control, execution } from "@/api/queries";
import { ENDED, type ExecutionEntry, type JsonObject } from "@/api/views";
import { money } from "@/components/amounts";
import { Button } from "@/components/Button";
import { PageSection } from "@/components/DescriptionList";
import { ErrorMessage } from "@/components/StatusMessage";
import { type ChatWorkflow, turns } from "@/features/chat/sessions";
import { Composer } from "../chat/Composer";
import { messageIn } from "../chat/parts";
import { Transcript, TurnView } from "../chat/TurnView";
import { type StartedTurn, sendToAgent } from "./agents";

const FIELD = "message";

interface Props {
  name: string;
  /** The unsaved state of the form; null to use the saved agent. */
  draft: JsonObject | null;
}

/** A chat with the agent as it stands on the page, saved or not. */
export function TryAgent({ name, draft }: Props) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [session, setSession] = useState<string | null>(null);
  const [words, setWords] = useState("");
  const read = useInfiniteQuery({ ...turns(session ?? "", { trials: "true" }), enabled: session !== null });
  const turnEntries = (read.data?.pages.flatMap((page) => page.executions as ExecutionEntry[]) ?? [])
    .filter((one) => !one.parent)
    .reverse();
  const last = turnEntries.at(-1);
  const newest = useQuery({ ...execution(last?.executionId ?? ""), enabled: last !== undefined });
  const isBusy = last !== undefined && !ENDED.has(newest.data?.status ?? last.status);
  const send = useMutation<StartedTurn, ApiError, string>({
    mutationFn: (message) => sendToAgent(name, { message, agent: draft, sessionId: session }),
    onSuccess: async (began) => {
      setWords("");
      setSession(began.sessionId);
      await client.invalidateQueries({ queryKey: ["executions", "turns", began.sessionId] });
    },
  });
  const stop = useMutation<unknown, ApiError, string>({
    mutationFn: (id) => control(id, "cancel", { reason: "stopped where the agent was tried" }),
    onSuccess: (_, id) => client.invalidateQueries({ queryKey: ["execution", id] }),
  });
  const failed = send.error ?? stop.error ?? read.error;
  return (
    <PageSection
      title={t("agents.tryTitle")}
      about={t("agents.tryAbout")}
      actions={
        session === null ? null : (
          <Button disabled={isBusy || send.isPending} onClick={() => setSession(null)}>
            <RotateCcw className="size-4" aria-hidden /> {t("agents.tryAnew")}
          </Button>
        )
      }
    >
      <section aria-label={t("agents.tryTitle")} className="overflow-hidden rounded-lg border border-line bg-surface">
        {session === null && !send.isPending ? null : (
          <Turns version={`${turnEntries.length} ${send.isPending}`}>
            {read.hasNextPage ? (
              <Button kind="quiet" onClick={() => void read.fetchNextPage()} className="mx-auto">
                {t("chat.earlier")}
              </Button>
            ) : null}
            {turnEntries.map((one) => (
              <div key={one.executionId}>
                <TurnView entry={one} field={FIELD} to={null} onRetry={(what) => send.mutate(what)} />
                <TurnUsage id={one.executionId} />
              </div>
            ))}
            {send.isPending ? (
              <div className="opacity-60">
                <Transcript words={send.variables} files={[]} to={null} />
              </div>
            ) : null}
          </Turns>
        )}
        {failed ? (
          <div className="p-3">
            <ErrorMessage error={failed} />
          </div>
        ) : null}
        <p aria-live="polite" className="px-3 pt-2 text-xs text-ink-faint">
          {t(draft === null ? "agents.trySaved" : "agents.tryUnsaved")}
        </p>
        <Composer
          workflow={agentAsChatWorkflow(name)}
          mayMention={false}
          text={words}
          onText={setWords}
          files={[]}
          onFiles={() => undefined}
          last={newest.data ? messageIn(newest.data.input, FIELD) : ""}
          isBusy={isBusy}
          isSteerable={false}
          isSending={send.isPending}
          onSend={() => send.mutate(words.trim())}
          onStop={() => last && stop.mutate(last.executionId)}
        />
      </section>
    </PageSection>
  );
}

function agentAsChatWorkflow(name: string): ChatWorkflow {
  return { id: name, name, description: null, conversational: true, field: FIELD, files: [] };
}

/** The conversation, with limited height so that the form stays visible; it scrolls to new content. */
function Turns(props: { version: string; children: React.ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: after sending a message the user sees it
  useEffect(() => {
    if (!box.current || !inner.current) return;
    const grown = new ResizeObserver(() => {
      if (box.current) box.current.scrollTop = box.current.scrollHeight;
    });
    grown.observe(inner.current);
    return () => grown.disconnect();
  }, [props.version]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard
    <div ref={box} tabIndex={0} className="max-h-[32rem] overflow-y-auto border-b border-line p-4">
      <div ref={inner} className="flex flex-col gap-6">
        {props.children}
      </div>
    </div>
  );
}

/** The usage of a turn. */
function TurnUsage({ id }: { id: string }) {
  const { t } = useTranslation();
  const known = useQuery(execution(id));
  const usage = known.data?.usage;
  if (!usage || usage.modelCalls === 0) return null;
  const cost = usage.costUsd === null ? "" : ` · ${money(usage.costUsd)}`;
  return (
    <p className="mt-1 text-xs text-ink-faint tabular-nums">
      {t("agents.tryTook", { given: usage.inputTokens, said: usage.outputTokens })}
      {cost}
      {known.data?.model ? ` · ${known.data.model}` : ""}
    </p>
  );
}
