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
import { idsIn, nameOf, splitMention } from "./mention";
import { isSteerable, messageIn } from "./parts";
import { type ChatWorkflow, chatWorkflowsById, sendMessage, turns } from "./sessions";
import { Transcript, TurnView } from "./TurnView";

const OPEN: ReadonlySet<string> = new Set(["pending", "running"]);
const NEAR_PX = 120;

/** One conversation. Without a session, the first message starts one. */
export function Conversation(props: { workflow: ChatWorkflow; session: string | null }) {
  const { t, i18n } = useTranslation();
  const { workflow } = props;
  const client = useQueryClient();
  const navigate = useNavigate();
  const fresh = useMemo(() => `chat-${uniqueId()}`, []);
  const session = props.session ?? fresh;
  const read = useInfiniteQuery({ ...turns(session), enabled: props.session !== null });
  const draft = `chat ${workflow.id} ${props.session ?? ""}`;
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
  const addressedWorkflow = useMemo(
    () => [...new Set([workflow.id, ...said.map((one) => one.workflowId)])].sort(),
    [said, workflow],
  );
  const known = useQuery({ ...chatWorkflowsById(addressedWorkflow), placeholderData: (before) => before });
  const mentioned = useQuery(chatWorkflowsById(idsIn(words)));
  const chatWorkflows = [workflow, ...(known.data ?? [])];
  const open = [...said].reverse().find((one) => OPEN.has(one.status));
  const steered = useQuery({ ...definition(open?.workflowId ?? ""), enabled: open !== undefined });
  const before = useQuery({ ...execution(last?.executionId ?? ""), enabled: last !== undefined });
  const maySteer = steered.data !== undefined && isSteerable(steered.data);

  const speak = useMutation<{ executionId: string }, ApiError, { to: ChatWorkflow; words: string }>({
    mutationFn: ({ to, words: what }) => sendMessage({ workflow: to, session, text: what, files, key: key.current }),
    onMutate: () => removeStoredState(draft),
    onError: () => setWords(words),
    onSuccess: async () => {
      key.current = uniqueId();
      setWords("");
      setFiles([]);
      await client.invalidateQueries({ queryKey: ["executions"] });
      if (props.session === null)
        await navigate({ to: "/chat/$workflow/$session", params: { workflow: workflow.id, session }, replace: true });
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
      const for_ = splitMention(words, await client.ensureQueryData(chatWorkflowsById(idsIn(words))));
      if (open && !for_.workflow) steer.mutate(words.trim());
      else if (for_.text) speak.mutate({ to: for_.workflow ?? workflow, words: for_.text });
    },
  });
  const failed = send.error ?? speak.error ?? steer.error ?? stop.error;

  return (
    <section
      aria-label={t("chat.with", { name: nameOf(workflow, i18n.language) })}
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
        {props.session === null && !speak.isPending ? <Greeting workflow={workflow} /> : null}
        {said.map((one) => (
          <TurnView
            key={one.executionId}
            entry={one}
            field={chatWorkflows.find((each) => each.id === one.workflowId)?.field ?? workflow.field}
            to={one.workflowId === workflow.id ? null : one.workflowId}
            onRetry={(what) =>
              speak.mutate({ to: chatWorkflows.find((each) => each.id === one.workflowId) ?? workflow, words: what })
            }
          />
        ))}
        {speak.isPending ? (
          <div className="opacity-60">
            <Transcript
              words={speak.variables.words}
              files={files.map((file) => file.name)}
              to={speak.variables.to.id === workflow.id ? null : speak.variables.to.id}
            />
          </div>
        ) : null}
      </Scroll>
      <Announced entry={last} name={nameOf(workflow, i18n.language)} />
      {failed ? (
        <div className="px-3 pb-2">
          <ErrorMessage error={failed} />
        </div>
      ) : null}
      <Composer
        workflow={workflow}
        mayMention
        text={words}
        onText={setWords}
        files={files}
        onFiles={setFiles}
        last={before.data ? messageIn(before.data.input, workflow.field) : ""}
        isBusy={open !== undefined}
        isSteerable={maySteer || splitMention(words, mentioned.data ?? []).workflow !== null}
        isSending={send.isPending || speak.isPending || steer.isPending}
        onSend={() => send.mutate()}
        onStop={() => open && stop.mutate(open.executionId)}
      />
    </section>
  );
}

function Greeting({ workflow }: { workflow: ChatWorkflow }) {
  const { t, i18n } = useTranslation();
  return (
    <div className="m-auto max-w-md text-center">
      <p className="line-clamp-3 text-lg font-semibold wrap-anywhere">
        <bdi>{nameOf(workflow, i18n.language)}</bdi>
      </p>
      <p className="mt-1 text-ink-soft">{textIn(workflow.description, i18n.language) || t("chat.begin")}</p>
      {workflow.conversational ? null : <p className="mt-1 text-ink-faint">{t("chat.single")}</p>}
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
      {status ? t(OPEN.has(status) ? "chat.answers" : `chat.answerStatus.${status}`, { name }) : ""}
    </p>
  );
}
