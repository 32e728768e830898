import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ChevronLeft, MessageCircle } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Chip } from "@/components/Chip";
import { iconLook } from "@/components/IconButton";
import { LoadMore } from "@/components/Listing";
import { QueryResult } from "@/components/QueryResult";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { useDebouncedInput } from "@/components/useDebouncedInput";
import { useTitle } from "@/components/useTitle";
import { textIn } from "@/i18n";
import { BUILT_IN_PREFIX } from "../workflows/ids";
import { Conversation } from "./Conversation";
import { nameOf } from "./mention";
import { SessionList } from "./SessionList";
import { type ChatWorkflow, chatWorkflowsById, chatWorkflowsFound } from "./sessions";

const WORDS_MAX = 200;

/** Chats with workflows: the list of conversations beside the open one. A phone shows one of the two. */
export function ChatPage() {
  const { workflow, session } = useParams({ strict: false }) as { workflow?: string; session?: string };
  return (
    <div className="flex h-full">
      <aside className="flex min-h-0 w-72 shrink-0 flex-col border-r border-line bg-surface max-md:hidden">
        <SessionList session={session ?? null} />
      </aside>
      <div className="flex min-w-0 flex-1 flex-col">
        {workflow ? <OpenChat workflow={workflow} session={session ?? null} /> : <WorkflowSelection />}
      </div>
    </div>
  );
}

function OpenChat({ workflow, session }: { workflow: string; session: string | null }) {
  const { t, i18n } = useTranslation();
  const known = useQuery(chatWorkflowsById([workflow]));
  const chatWorkflow = known.data?.[0];
  const name = chatWorkflow ? nameOf(chatWorkflow, i18n.language) : "";
  const namesakes = useInfiniteQuery({
    ...chatWorkflowsFound(name.slice(0, WORDS_MAX)),
    enabled: chatWorkflow !== undefined,
  });
  useTitle(name || t("shell.chat"));
  return (
    <QueryResult query={known}>
      {() => (
        <>
          <div className="flex items-center gap-2 border-b border-line bg-surface px-3 py-2">
            <Link to="/chat" aria-label={t("chat.back")} title={t("chat.back")} className={`${iconLook()} md:hidden`}>
              <ChevronLeft className="size-4" aria-hidden />
            </Link>
            <h1 className="min-w-0 truncate font-semibold">
              <bdi>{name || workflow}</bdi>
            </h1>
            {chatWorkflow ? <WorkflowHint chatWorkflow={chatWorkflow} among={whole(namesakes.data)} /> : null}
          </div>
          {chatWorkflow ? (
            <Conversation key={session ?? `new ${workflow}`} workflow={chatWorkflow} session={session} />
          ) : (
            <div className="p-6">
              <EmptyMessage title={t("chat.gone", { name: workflow })}>{t("chat.goneHint")}</EmptyMessage>
            </div>
          )}
        </>
      )}
    </QueryResult>
  );
}

const whole = (found: { pages: { workflows: ChatWorkflow[] }[] } | undefined) =>
  found?.pages.flatMap((page) => page.workflows) ?? [];

/** If workflows have the same name, their ids distinguish them. */
function WorkflowHint({ chatWorkflow, among }: { chatWorkflow: ChatWorkflow; among: readonly ChatWorkflow[] }) {
  const { t, i18n } = useTranslation();
  const name = nameOf(chatWorkflow, i18n.language);
  const isOurs = chatWorkflow.id.startsWith(BUILT_IN_PREFIX);
  if (isOurs) return <Chip>{t("chat.builtIn")}</Chip>;
  const hasNamesake = among.some((one) => one.id !== chatWorkflow.id && nameOf(one, i18n.language) === name);
  return hasNamesake ? (
    <span className="block truncate font-mono text-xs text-ink-faint">{chatWorkflow.id}</span>
  ) : null;
}

/** The workflows to chat with; on a phone also the list of conversations. */
function WorkflowSelection() {
  const { t } = useTranslation();
  const [words, setWords] = useState("");
  const [typed, type] = useDebouncedInput(words, setWords);
  const found = useInfiniteQuery(chatWorkflowsFound(words));
  useTitle(t("shell.chat"));
  return (
    <>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <div className="mx-auto max-w-3xl p-4 sm:p-6">
          <div className="flex flex-wrap items-center justify-between gap-2">
            <h1 className="text-xl font-semibold">{t("chat.whom")}</h1>
            {found.hasNextPage || typed || words ? (
              <SearchBox value={typed} onChange={type} label={t("chat.searchWhom")} />
            ) : null}
          </div>
          <QueryResult query={found}>
            {(reply) => {
              const all = whole(reply);
              if (all.length > 0)
                return <ChatWorkflowList all={all} isWhole={reply.pages.length === 1 && !found.hasNextPage} />;
              return (
                <div className="mt-4">
                  {words ? (
                    <EmptyMessage title={t("chooser.none", { words })} />
                  ) : (
                    <EmptyMessage isNew title={t("chat.nobody")}>
                      {t("chat.nobodyHint")}
                    </EmptyMessage>
                  )}
                </div>
              );
            }}
          </QueryResult>
          <LoadMore query={found} />
        </div>
      </div>
      <div className="border-t border-line md:hidden">
        <SessionList session={null} />
      </div>
    </>
  );
}

/** A complete list shows conversational workflows first; a paged list keeps its order while it grows. */
function ChatWorkflowList({ all, isWhole }: { all: readonly ChatWorkflow[]; isWhole: boolean }) {
  const { t, i18n } = useTranslation();
  const ranked = isWhole ? [...all].sort((a, b) => Number(b.conversational) - Number(a.conversational)) : all;
  return (
    <ul className="mt-4 grid gap-2 sm:grid-cols-2">
      {ranked.map((one) => (
        <li key={one.id}>
          <Link
            to="/chat/$workflow"
            params={{ workflow: one.id }}
            className="flex h-full gap-3 rounded-lg border border-line bg-surface p-3 hover:border-line-strong"
          >
            <MessageCircle
              className={`mt-0.5 size-5 shrink-0 ${one.conversational ? "text-accent" : "text-ink-faint"}`}
              aria-hidden
            />
            <span className="min-w-0">
              <bdi className="block truncate font-medium">{nameOf(one, i18n.language)}</bdi>
              <WorkflowHint chatWorkflow={one} among={all} />
              <span className="line-clamp-2 text-sm text-ink-soft">
                {textIn(one.description, i18n.language) || t(one.conversational ? "chat.converses" : "chat.single")}
              </span>
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
