/** Two texts, line by line; what is the same in both is folded away. */
import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { editorPhrases } from "@/forms/code/phrases";

const LOOKS = EditorView.theme({
  "&": { fontSize: "12px", backgroundColor: "var(--surface)", color: "var(--ink)" },
  ".cm-content": { fontFamily: "var(--font-mono)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--ink-faint)", border: "0" },
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "var(--done-soft)" },
  ".cm-deletedChunk": { backgroundColor: "var(--failed-soft)" },
  "&.cm-merge-b .cm-changedText": { background: "color-mix(in srgb, var(--done) 25%, transparent)" },
  ".cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--failed) 25%, transparent)" },
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--ink-soft)" },
});

export default function TextDiff({ before, after }: { before: string; after: string }) {
  const { t } = useTranslation();
  const place = useRef<HTMLDivElement>(null);
  const label = t("diff.text");
  useEffect(() => {
    if (!place.current) return;
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: after,
        extensions: [
          editorPhrases(t),
          lineNumbers(),
          EditorState.readOnly.of(true),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label }),
          LOOKS,
          unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } }),
        ],
      }),
    });
    return () => view.destroy();
  }, [before, after, label, t]);
  if (before === after) return <p className="text-ink-soft">{t("diff.none")}</p>;
  return <div ref={place} className="max-h-96 overflow-auto rounded-md border border-line" />;
}
