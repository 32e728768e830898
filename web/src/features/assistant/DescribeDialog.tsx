import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError, Problem } from "@/api/http";
import { freeId, workflowName } from "@/api/names";
import { saveNew } from "@/api/queries";
import type { Definition } from "@/api/views";
import { Button } from "@/components/Button";
import { Dialog } from "@/components/Dialog";
import { ErrorMessage, Loading, ProblemList } from "@/components/StatusMessage";
import { useDebouncedInput } from "@/components/useDebouncedInput";
import { remember } from "./conversation";
import { MessageInput } from "./MessageInput";
import { DesignFailed } from "./NoModel";
import { Rounds } from "./Rounds";
import { type Round, streamDesign } from "./rounds";

const Preview = lazy(() => import("./Preview"));

interface DesignedWorkflow {
  id?: string;
  ok: boolean;
  document: Definition | null;
  problems: Problem[];
  rounds: Round[];
}

/** Design a workflow from a description: the model drafts it and corrects problems, the user sees the result. Accepting
 * it saves it and opens the editor. */
export function DescribeDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [messages, setMessages] = useState<{ words: string; rounds: Round[] }[]>([]);
  const [rounds, setRounds] = useState<Round[]>([]);
  const [debouncedName, setDebouncedName] = useState("");
  const [name, setName] = useDebouncedInput(debouncedName, setDebouncedName);
  const known = useQuery({ ...workflowName(debouncedName), enabled: debouncedName !== "" });
  const stop = useRef(new AbortController());

  const design = useMutation<DesignedWorkflow, ApiError, string>({
    mutationFn: (words) => {
      stop.current = new AbortController();
      setRounds([]);
      const earlier = messages.map((one) => ({
        words: one.words,
        answer: one.rounds.at(-1)?.answer ?? "",
        accepted: null,
      }));
      return streamDesign<DesignedWorkflow>(
        "/api/workflows/generate",
        { words, earlier },
        { signal: stop.current.signal, onRound: (round) => setRounds((now) => [...now, round]) },
      );
    },
    onSuccess: async (made, words) => {
      setMessages((now) => [...now, { words, rounds: made.rounds }]);
      if (!made.id) return;
      const id = await freeId(made.id);
      setDebouncedName((now) => now || id);
    },
  });
  const made = design.data?.document ? design.data : null;
  const save = useMutation<{ id: string }, ApiError, Definition>({
    mutationFn: (document) =>
      saveNew(JSON.stringify({ ...document, id: name.trim() }, null, 2), !design.data?.ok, { "if-none-match": "*" }),
    onSuccess: async ({ id }) => {
      remember(id, messages);
      await client.invalidateQueries({ queryKey: ["workflows"] });
      await navigate({ to: "/workflows/$id", params: { id } });
    },
  });
  const close = () => {
    stop.current.abort();
    onClose();
  };
  const isTaken = Boolean(known.data) || save.error?.code === "revision-moved";
  const isStopped = design.isError && stop.current.signal.aborted;

  return (
    <Dialog open onClose={close} title={t("describe.title")} about={t("describe.about")} wide>
      <div className="space-y-4">
        {messages.length > 0 ? <Messages texts={messages.map((one) => one.words)} /> : null}
        {design.isPending || rounds.length > 0 ? <Rounds rounds={rounds} isBusy={design.isPending} /> : null}
        {isStopped ? <p className="text-waiting">{t("assistant.stopped")}</p> : null}
        {design.isError && !isStopped ? (
          <DesignFailed error={design.error} onRetry={() => design.mutate(design.variables)} />
        ) : null}
        {design.data && !made ? <p className="text-failed">{t("describe.nothing")}</p> : null}
        {made?.document && !design.isPending ? <Result document={made.document} problems={made.problems} /> : null}
        <div className="sticky -bottom-4 -mx-4 -mb-4 space-y-3 border-line bg-raised p-4 not-first:border-t first:-mt-4">
          <MessageInput
            key={messages.length}
            name="describe"
            autoFocus
            rows={messages.length > 0 ? 2 : 5}
            label={messages.length > 0 ? t("describe.more") : t("describe.wish")}
            placeholder={messages.length > 0 ? t("describe.moreHint") : t("describe.wishHint")}
            isBusy={design.isPending}
            onSend={(words) => design.mutate(words)}
            onStop={() => stop.current.abort()}
          />
          {made?.document && !design.isPending ? (
            <div className="flex flex-wrap items-end justify-end gap-2">
              <label className="min-w-40 flex-1 max-sm:w-full max-sm:flex-none">
                <span className="text-ink-soft">{t("describe.id")}</span>
                <input
                  value={name}
                  onChange={(event) => {
                    setName(event.target.value);
                    save.reset();
                  }}
                  aria-invalid={isTaken}
                  aria-describedby="describe-taken"
                  className="mt-1 h-8 w-full rounded-md border border-line-strong bg-surface px-2 font-mono"
                />
                <span id="describe-taken" role="status" className="text-xs text-failed">
                  {isTaken ? t("describe.taken") : ""}
                </span>
              </label>
              <Button onClick={close}>{t("describe.leave")}</Button>
              <Button
                kind="primary"
                disabled={!name.trim() || isTaken || save.isPending}
                onClick={() => made.document && save.mutate(made.document)}
              >
                {made.ok ? t("describe.take") : t("describe.takeDraft")}
              </Button>
            </div>
          ) : null}
          {save.isError && save.error.code !== "revision-moved" ? <ErrorMessage error={save.error} /> : null}
        </div>
      </div>
    </Dialog>
  );
}

/** The user's messages so far. */
function Messages({ texts }: { texts: readonly string[] }) {
  const { t } = useTranslation();
  return (
    <ol aria-label={t("assistant.said")} className="space-y-2">
      {texts.map((text, at) => (
        <li
          // biome-ignore lint/suspicious/noArrayIndexKey: messages are only appended
          key={at}
          className="ml-auto w-fit max-w-[85%] rounded-lg rounded-br-sm bg-accent-soft px-3 py-2 break-words whitespace-pre-wrap"
        >
          <bdi>{text}</bdi>
        </li>
      ))}
    </ol>
  );
}

/** The designed workflow: its picture and its problems. */
function Result({ document, problems }: { document: Definition; problems: Problem[] }) {
  const { t } = useTranslation();
  return (
    <>
      <div className="h-56 overflow-hidden rounded-md border border-line">
        <Suspense fallback={<Loading />}>
          <Preview definition={document} />
        </Suspense>
      </div>
      {problems.length > 0 ? (
        <ProblemList problems={problems} />
      ) : (
        <p className="text-done">{t("workflows.noProblems")}</p>
      )}
    </>
  );
}
