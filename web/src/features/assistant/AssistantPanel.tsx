import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import { type ApiError, apiRequest } from "@/api/http";
import { useHasRole } from "@/components/useHasRole";
import { editRequest, type Operation } from "@/features/editor/document/operations";
import { useEditor } from "@/features/editor/editorContext";
import { conversationAbout, type Exchange, isBusy } from "./conversation";
import { ExchangeView } from "./ExchangeView";
import { MessageInput } from "./MessageInput";

const IDEAS = ["review", "retry", "parallel"] as const;

/** A chat with the assistant about the workflow in the editor. Each answer proposes typed edits, which the user accepts
 * as one undo step or refuses. */
export default function AssistantPanel() {
  const { t } = useTranslation();
  const { id, saved, draft } = useEditor();
  const mayEdit = useHasRole("editor");
  const conversation = useStore(conversationAbout(id));
  const [deciding, setDeciding] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  const busy = isBusy(conversation.exchanges);
  const messageCount = conversation.exchanges.length + (conversation.exchanges.at(-1)?.rounds.length ?? 0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll to the end whenever a message arrives
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" });
  }, [messageCount, busy]);

  const send = (words: string) =>
    void conversation.send(words, { id, shown: draft.shown, done: draft.done.flat(), revision: saved.revision });

  /** If the workflow has changed since the proposal, let the server check that the proposal still applies. */
  const accept = async (one: Exchange, taken: Operation[], all: number) => {
    const { proposal } = one;
    if (!proposal) return;
    setDeciding(true);
    try {
      if (JSON.stringify(proposal.before) !== JSON.stringify(draft.shown)) {
        const body = editRequest([...draft.done, taken]);
        await apiRequest(`/api/workflows/${encodeURIComponent(id)}/edit`, { body });
      }
      draft.act(...taken);
      if (taken.length === all) conversation.recordOutcome(one.id, "accepted");
      else conversation.recordOutcome(one.id, "accepted", { operations: taken, taken: taken.length, all });
    } catch (why) {
      conversation.fail(one.id, why as ApiError);
    } finally {
      setDeciding(false);
    }
  };

  if (saved.builtIn) return <p className="text-ink-soft">{t("assistant.builtIn")}</p>;
  if (!mayEdit) return <p className="text-ink-soft">{t("assistant.mayNot")}</p>;
  return (
    <div className="flex min-h-full flex-col gap-4">
      {conversation.exchanges.length === 0 ? (
        <div>
          <p className="text-ink-soft">{t("assistant.about")}</p>
          <ul className="mt-3 space-y-1.5">
            {IDEAS.map((one) => (
              <li key={one}>
                <button
                  type="button"
                  onClick={() => send(t(`assistant.ideas.${one}`))}
                  className="w-full rounded-md border border-line px-3 py-2 text-left hover:border-line-strong hover:bg-sunken"
                >
                  {t(`assistant.ideas.${one}`)}
                </button>
              </li>
            ))}
          </ul>
        </div>
      ) : (
        <>
          <ol aria-label={t("assistant.said")} className="space-y-5">
            {conversation.exchanges.map((one) => (
              <ExchangeView
                key={one.id}
                exchange={one}
                isDeciding={deciding}
                onAccept={(taken, all) => void accept(one, taken, all)}
                onRefuse={() => conversation.recordOutcome(one.id, "refused")}
                onRetry={() => send(one.words)}
              />
            ))}
          </ol>
          {busy ? null : (
            <button
              type="button"
              onClick={conversation.clear}
              className="min-h-6 self-start text-xs text-ink-faint underline hover:text-ink"
            >
              {t("assistant.clear")}
            </button>
          )}
        </>
      )}
      <div ref={end} className="scroll-mb-28" />
      <div className="sticky -bottom-4 -mx-4 -mb-4 mt-auto border-t border-line bg-surface p-3">
        <MessageInput
          name={`assistant ${id}`}
          label={t("assistant.wish")}
          placeholder={t("assistant.wishHint")}
          isBusy={busy}
          onSend={send}
          onStop={conversation.stop}
        />
      </div>
    </div>
  );
}
