/**
 * Text of the author's document. Canvas edits appear in it immediately; typed text appears on the canvas once it is
 * valid.
 */
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, apiRequest, type Problem } from "@/api/http";
import { definitionIn } from "@/api/queries";
import type { Definition } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorMessage } from "@/components/StatusMessage";
import DocumentEditor, { type DocumentProblem } from "@/forms/code/DocumentEditor";
import { formatOf, linesOf } from "@/forms/code/nodeLines";
import { useServerTexts } from "@/i18n/given";
import type { EditResponse } from "../document/useChecked";
import { useEditor } from "../editorContext";

const DEBOUNCE_MS = 500;

export default function TextPanel() {
  const { t } = useTranslation();
  const { checked, saved, draft, picked, mayChange } = useEditor();
  const { meaning } = useServerTexts();
  const typing = useTyping();
  // The server's text of the draft; until it arrives, the last displayed text.
  const known = draft.done.length === 0 ? saved.text : (checked.text ?? saved.text);
  const isCurrent = draft.done.length === 0 || checked.of === draft.done;
  const [last, setLast] = useState(known);
  const text = typing.text ?? (isCurrent ? known : last);
  if (text !== last) setLast(text);
  const problems = typing.error?.problems ?? checked.problems;
  const remarks = useMemo(() => documentProblems(problems, meaning), [problems, meaning]);
  const node = picked?.kind === "node" ? picked.id : null;
  const lines = useMemo(() => (node === null ? null : linesOf(text, node)), [text, node]);
  return (
    <section className="flex h-full min-h-96 flex-col gap-2" aria-label={t("panel.text")}>
      <p className="text-xs text-ink-faint">{t("text.about")}</p>
      <div className="min-h-0 flex-1">
        <DocumentEditor
          label={t("text.label")}
          value={text}
          onChange={typing.type}
          format={formatOf(text)}
          problems={remarks}
          picked={lines}
          isReadOnly={!mayChange}
        />
      </div>
      {typing.error ? (
        <div className="space-y-2">
          <ErrorMessage error={typing.error} />
          <p className="text-sm text-ink-soft">{t("text.stays")}</p>
          <Button onClick={typing.discard}>{t("text.takeBack")}</Button>
        </div>
      ) : null}
    </section>
  );
}

interface Typing {
  /** Typed text that is not applied yet. */
  text: string | null;
  /** Why the typed text could not be applied. */
  error: ApiError | null;
  type: (text: string) => void;
  discard: () => void;
}

function useTyping(): Typing {
  const { id, store } = useEditor();
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    if (text === null) return;
    const stop = new AbortController();
    const read = async () => {
      const path = `/api/workflows/${encodeURIComponent(id)}/edit`;
      try {
        const body = { text, native: true, graph: true };
        const edited = await apiRequest<EditResponse & { native: Definition }>(path, { body, signal: stop.signal });
        if (stop.signal.aborted) return;
        store.getState().type({
          op: "replace_text",
          text,
          reads: definitionIn({ document: edited.native, graph: edited.graph ?? null }),
        });
        setError(null);
        setText(null);
      } catch (why) {
        if (!stop.signal.aborted) setError(why as ApiError);
      }
    };
    const timer = setTimeout(() => void read(), DEBOUNCE_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, store, text]);
  const takeBack = () => {
    setText(null);
    setError(null);
  };
  return { text, error, type: setText, discard: takeBack };
}

function documentProblems(problems: readonly Problem[], meaning: (code: string) => string | null): DocumentProblem[] {
  return problems.flatMap(({ severity, line, column, message, code }) =>
    line === null ? [] : [{ severity, line, column, message, meaning: meaning(code) }],
  );
}
