import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import { Send } from "lucide-react";
import { lazy, Suspense, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, isNotFound } from "@/api/http";
import type { Schemas } from "@/api/views";
import { windowStorage } from "@/browserStorage";
import { Button } from "@/components/Button";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useTitle } from "@/components/useTitle";
import { uniqueId } from "@/uniqueId";
import { LoginNeeded } from "./FormPage";
import { chatPage, conversation, sendMessage, type Turn } from "./publish";

const Markdown = lazy(() => import("@/components/Markdown"));
type Page = Schemas["ChatPageView"];

/** A published chat, for people without an account: on a page of its own, or in a frame of another site. */
export function TalkPage() {
  const { t } = useTranslation();
  const token = useLocation({ select: (at) => decodeURIComponent(at.pathname.split("/").at(-1) ?? "") });
  const known = useQuery(chatPage(token));
  useTitle(known.data?.title ?? t("published.chatPage"));
  const isOut = known.error instanceof ApiError && known.error.status === 401;
  return (
    <div className="mx-auto flex h-full max-w-2xl flex-col gap-3 p-4">
      {known.isPending ? <Loading /> : null}
      {isOut ? <LoginNeeded /> : known.isError ? <p role="alert">{t("published.gone")}</p> : null}
      {known.isSuccess ? (
        <>
          <h1 className="text-xl font-semibold wrap-anywhere">{known.data.title}</h1>
          {known.data.text ? (
            <p className="whitespace-pre-line text-ink-soft wrap-anywhere">{known.data.text}</p>
          ) : null}
          <Talk token={token} page={known.data} />
        </>
      ) : null}
    </div>
  );
}

/** The conversation of this visitor. This tab keeps its name, so that a reload shows it again. */
function Talk({ token, page }: { token: string; page: Page }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const kept = `talk ${token}`;
  const [name, setName] = useState(() => windowStorage.read(kept));
  const read = useQuery(conversation(token, name));
  const [text, setText] = useState("");
  const [words, setWords] = useState("");
  const key = useRef(uniqueId());
  const turns = read.data ?? [];
  const start = () => {
    windowStorage.write(kept, null);
    setName(null);
  };
  const sending = useMutation({
    mutationFn: (message: string) =>
      sendMessage(token, { message, conversation: name, key: key.current }, (more) =>
        setWords((before) => before + more),
      ),
    onMutate: () => {
      setText("");
      setWords("");
    },
    onError: (_, message) => setText(message),
    onSuccess: async (given) => {
      key.current = uniqueId();
      windowStorage.write(kept, given);
      setName(given);
      await client.fetchQuery({ ...conversation(token, given), staleTime: 0 });
    },
  });
  const isBusy = sending.isPending || turns.at(-1)?.status === "running";
  return (
    <>
      <Scrolled version={`${turns.length} ${words.length} ${sending.isPending}`}>
        <Answer text={page.greeting || t("published.greeting")} />
        {turns.map((turn, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: turns are only added at the end
          <TurnText key={index} turn={turn} />
        ))}
        {sending.isPending ? (
          <>
            <Message text={sending.variables} />
            {words.trim() ? <Answer text={words} /> : <Loading />}
          </>
        ) : null}
      </Scrolled>
      {isNotFound(read.error) || isNotFound(sending.error) ? (
        <p role="alert">
          {t("published.ended")}{" "}
          <button type="button" className="underline" onClick={start}>
            {t("published.startAgain")}
          </button>
        </p>
      ) : sending.isError ? (
        <ErrorMessage error={sending.error} />
      ) : null}
      {turns.length === 0 && !sending.isPending ? (
        <Suggestions of={page.suggestions} onChoose={(one) => sending.mutate(one)} />
      ) : null}
      <MessageField
        text={text}
        onText={setText}
        isBusy={isBusy}
        onSend={() => sending.mutate(text.trim())}
        onNew={turns.length > 0 ? start : null}
      />
    </>
  );
}

function TurnText({ turn }: { turn: Turn }) {
  const { t } = useTranslation();
  return (
    <>
      <Message text={turn.message} />
      {turn.status === "completed" ? (
        <Answer text={turn.answer || t("published.noAnswer")} />
      ) : turn.status !== "running" ? (
        <p className="text-failed">{t("published.failed")}</p>
      ) : turn.waiting ? (
        <p role="status" className="text-ink-soft">
          {t("published.waitingChat")}
        </p>
      ) : (
        <Loading />
      )}
    </>
  );
}

function Message({ text }: { text: string }) {
  return (
    <p className="ml-auto w-fit max-w-[85%] rounded-lg rounded-br-sm bg-accent-soft px-3 py-2 whitespace-pre-wrap wrap-anywhere">
      <bdi>{text}</bdi>
    </p>
  );
}

function Answer({ text }: { text: string }) {
  return (
    <div className="w-fit max-w-[95%] rounded-lg rounded-bl-sm border border-line bg-surface px-3 py-2">
      <Suspense fallback={<Loading />}>
        <Markdown text={text} />
      </Suspense>
    </div>
  );
}

function Suggestions(props: { of: readonly string[]; onChoose: (text: string) => void }) {
  return (
    <div className="flex flex-wrap gap-2">
      {props.of.map((one) => (
        <Button key={one} onClick={() => props.onChoose(one)}>
          {one}
        </Button>
      ))}
    </div>
  );
}

/** Keeps the newest message in sight. */
function Scrolled(props: { version: string; children: React.ReactNode }) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when something was added
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [props.version]);
  return (
    <div
      ref={box}
      role="log"
      aria-label={t("published.conversation")}
      className="min-h-40 flex-1 space-y-3 overflow-y-auto"
    >
      {props.children}
    </div>
  );
}

function MessageField(props: {
  text: string;
  onText: (text: string) => void;
  isBusy: boolean;
  onSend: () => void;
  onNew: (() => void) | null;
}) {
  const { t } = useTranslation();
  const id = useId();
  const maySend = props.text.trim() !== "" && !props.isBusy;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (maySend) props.onSend();
      }}
    >
      <div className="flex items-end gap-2">
        <label htmlFor={id} className="sr-only">
          {t("published.message")}
        </label>
        <textarea
          id={id}
          rows={1}
          value={props.text}
          placeholder={t("published.message")}
          onChange={(event) => props.onText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            if (maySend) props.onSend();
          }}
          className="block field-sizing-content max-h-48 min-h-9 w-full resize-none rounded-md border border-line-strong bg-surface px-2.5 py-2"
        />
        <Button kind="primary" type="submit" disabled={!maySend} aria-label={t("published.send")} className="h-9">
          <Send className="size-4" aria-hidden />
        </Button>
      </div>
      {props.onNew ? (
        <button type="button" onClick={props.onNew} className="mt-1 min-h-6 text-xs text-ink-faint underline">
          {t("published.newConversation")}
        </button>
      ) : null}
    </form>
  );
}
