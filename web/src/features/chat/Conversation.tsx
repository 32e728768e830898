import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, apiRequest } from "@/api/http";
import { control, definition, execution, executionPath } from "@/api/queries";
import type { ExecutionEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { removeStoredState, useStoredState } from "@/components/useStoredState";
import { textIn } from "@/i18n";
import { uniqueId } from "@/uniqueId";
import { Composer } from "./Composer";
import { addressed, idsIn, nameOf } from "./mention";
import { isSteerable, saidIn } from "./parts";
import { type Speaker, say, speakersNamed, turns } from "./sessions";
import { Transcript, TurnView } from "./TurnView";

const OPEN: ReadonlySet<string> = new Set(["pending", "running"]);
const NEAR_PX = 120;

/** One conversation. Without a session, the first message starts one. */
export function Conversation(props: { speaker: Speaker; session: string | null }) {
  const { t, i18n } = useTranslation();
  const { speaker } = props;
  const client = useQueryClient();
  const navigate = useNavigate();
  const fresh = useMemo(() => `chat-${uniqueId()}`, []);
  const session = props.session ?? fresh;
  const read = useInfiniteQuery({ ...turns(session), enabled: props.session !== null });
  const draft = `chat ${speaker.id} ${props.session ?? ""}`;
  const [words, setWords] = useStoredState(draft);
  const [files, setFiles] = useState<readonly File[]>([]);
  const key = useRef(uniqueId());
  const said = useMemo(
    () =>
      (read.data?.pages.flatMap((page) => page.executions as ExecutionEntry[]) ?? [])
        .filter((one) => !one.parent)
        .reverse(),
    [read.data],
  );
  const last = said.at(-1);
  const spokenTo = useMemo(
    () => [...new Set([speaker.id, ...said.map((one) => one.workflowId)])].sort(),
    [said, speaker],
  );
  const known = useQuery({ ...speakersNamed(spokenTo), placeholderData: (before) => before });
  const meant = useQuery(speakersNamed(idsIn(words)));
  const speakers = [speaker, ...(known.data ?? [])];
  const open = [...said].reverse().find((one) => OPEN.has(one.status));
  const steered = useQuery({ ...definition(open?.workflowId ?? ""), enabled: open !== undefined });
  const before = useQuery({ ...execution(last?.executionId ?? ""), enabled: last !== undefined });
  const maySteer = steered.data !== undefined && isSteerable(steered.data);

  const speak = useMutation<{ executionId: string }, ApiError, { to: Speaker; words: string }>({
    mutationFn: ({ to, words: what }) => say({ speaker: to, session, words: what, files, key: key.current }),
    onMutate: () => removeStoredState(draft),
    onError: () => setWords(words),
    onSuccess: async () => {
      key.current = uniqueId();
      setWords("");
      setFiles([]);
      await client.invalidateQueries({ queryKey: ["executions"] });
      if (props.session === null)
        await navigate({ to: "/chat/$workflow/$session", params: { workflow: speaker.id, session }, replace: true });
    },
  });
  const steer = useMutation<unknown, ApiError, string>({
    mutationFn: (what) => apiRequest(`${executionPath(open?.executionId ?? "")}/steer`, { body: { messages: [what] } }),
    onSuccess: () => setWords(""),
  });
  const stop = useMutation<unknown, ApiError, string>({
    mutationFn: (id) => control(id, "cancel", { reason: "stopped in the chat" }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["executions"] }),
  });
  const send = useMutation<void, ApiError>({
    mutationFn: async () => {
      const for_ = addressed(words, await client.ensureQueryData(speakersNamed(idsIn(words))));
      if (open && !for_.speaker) steer.mutate(words.trim());
      else if (for_.words) speak.mutate({ to: for_.speaker ?? speaker, words: for_.words });
    },
  });
  const failed = send.error ?? speak.error ?? steer.error ?? stop.error;

  return (
    <section
      aria-label={t("chat.with", { name: nameOf(speaker, i18n.language) })}
      className="flex min-h-0 flex-1 flex-col"
    >
      <Scroll version={`${said.length} ${speak.isPending}`}>
        {read.hasNextPage ? (
          <Button kind="quiet" onClick={() => void read.fetchNextPage()} className="mx-auto">
            {t("chat.earlier")}
          </Button>
        ) : null}
        {read.isError ? <ErrorMessage error={read.error} onRetry={() => void read.refetch()} /> : null}
        {props.session !== null && read.isPending ? <Loading /> : null}
        {props.session === null && !speak.isPending ? <Greeting speaker={speaker} /> : null}
        {said.map((one) => (
          <TurnView
            key={one.executionId}
            entry={one}
            field={speakers.find((each) => each.id === one.workflowId)?.field ?? speaker.field}
            to={one.workflowId === speaker.id ? null : one.workflowId}
            onAgain={(what) =>
              speak.mutate({ to: speakers.find((each) => each.id === one.workflowId) ?? speaker, words: what })
            }
          />
        ))}
        {speak.isPending ? (
          <div className="opacity-60">
            <Transcript
              words={speak.variables.words}
              files={files.map((file) => file.name)}
              to={speak.variables.to.id === speaker.id ? null : speak.variables.to.id}
            />
          </div>
        ) : null}
      </Scroll>
      <Announced entry={last} name={nameOf(speaker, i18n.language)} />
      {failed ? (
        <div className="px-3 pb-2">
          <ErrorMessage error={failed} />
        </div>
      ) : null}
      <Composer
        speaker={speaker}
        mayMention
        words={words}
        onWords={setWords}
        files={files}
        onFiles={setFiles}
        last={before.data ? saidIn(before.data.input, speaker.field) : ""}
        isBusy={open !== undefined}
        isSteerable={maySteer || addressed(words, meant.data ?? []).speaker !== null}
        isSending={send.isPending || speak.isPending || steer.isPending}
        onSay={() => send.mutate()}
        onStop={() => open && stop.mutate(open.executionId)}
      />
    </section>
  );
}

function Greeting({ speaker }: { speaker: Speaker }) {
  const { t, i18n } = useTranslation();
  return (
    <div className="m-auto max-w-md text-center">
      <p className="line-clamp-3 text-lg font-semibold wrap-anywhere">
        <bdi>{nameOf(speaker, i18n.language)}</bdi>
      </p>
      <p className="mt-1 text-ink-soft">{textIn(speaker.description, i18n.language) || t("chat.begin")}</p>
      {speaker.conversational ? null : <p className="mt-1 text-ink-faint">{t("chat.single")}</p>}
    </div>
  );
}

/** Keep the list scrolled to its end, unless the user has scrolled up. */
function Scroll(props: { version: string; children: React.ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: after sending a message the user sees it
  useEffect(() => {
    follows.current = true;
  }, [props.version]);
  useEffect(() => {
    if (!box.current || !inner.current) return;
    const seen = new ResizeObserver(() => {
      if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
    });
    seen.observe(inner.current);
    return () => seen.disconnect();
  }, []);
  return (
    <div
      ref={box}
      onScroll={({ currentTarget: at }) => {
        follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_PX;
      }}
      className="min-h-0 flex-1 overflow-y-auto px-4"
    >
      <div ref={inner} className="mx-auto flex min-h-full max-w-3xl flex-col gap-6 py-5">
        {props.children}
      </div>
    </div>
  );
}

/** Status for screen readers: an answer is in progress, or has arrived. Streaming text is not announced word by
 * word. */
function Announced({ entry, name }: { entry: ExecutionEntry | undefined; name: string }) {
  const { t } = useTranslation();
  const status = entry?.status;
  return (
    <p role="status" className="sr-only">
      {status ? t(OPEN.has(status) ? "chat.answers" : `chat.told.${status}`, { name }) : ""}
    </p>
  );
}
