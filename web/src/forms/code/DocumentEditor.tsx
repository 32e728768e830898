/** Editor for a YAML or JSON document: line numbers, search, folding, and problems at their lines. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { Decoration, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { diagnosticText } from "./diagnosticText";
import { EDITOR_THEME } from "./editorTheme";
import { editorPhrases } from "./phrases";
import { useCodeMirror } from "./useCodeMirror";

export type Format = "yaml" | "json";

export interface DocumentProblem {
  severity: "error" | "warning" | "info";
  /** 1-based. */
  line: number;
  column: number | null;
  message: string;
  /** Translated meaning of the code; null in English. */
  meaning: string | null;
}

interface Props {
  value: string;
  onChange: (text: string) => void;
  format: Format;
  label: string;
  isReadOnly?: boolean;
  problems?: readonly DocumentProblem[];
  /** First and last line of the selected node, 1-based. */
  picked?: readonly [number, number] | null;
  /** Without line numbers, as high as its text. */
  isSmall?: boolean;
}

export default function DocumentEditor(props: Props) {
  const { value, onChange, format, label, problems: remarks, picked, isReadOnly = false, isSmall = false } = props;
  const { t } = useTranslation();
  const parts = useRef({ language: new Compartment(), writable: new Compartment(), picked: new Compartment() });
  const { container: place, view } = useCodeMirror(value, onChange, () => [
    isSmall ? [] : [lineNumbers(), foldGutter(), lintGutter(), highlightActiveLine(), highlightSelectionMatches()],
    editorPhrases(t),
    history(),
    search({ top: true }),
    indentOnInput(),
    bracketMatching(),
    EditorView.lineWrapping,
    // Tab indents; Escape followed by Tab leaves the editor.
    keymap.of([
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      ...defaultKeymap,
      ...(isSmall ? [] : [indentWithTab]),
    ]),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
    parts.current.language.of(languageOf(format)),
    parts.current.writable.of(EditorState.readOnly.of(isReadOnly)),
    parts.current.picked.of([]),
    EDITOR_THEME,
  ]);

  useEffect(() => {
    view.current?.dispatch({ effects: parts.current.language.reconfigure(languageOf(format)) });
  }, [format, view]);
  useEffect(() => {
    view.current?.dispatch({ effects: parts.current.writable.reconfigure(EditorState.readOnly.of(isReadOnly)) });
  }, [isReadOnly, view]);
  useEffect(() => {
    const now = view.current;
    if (now)
      now.dispatch(
        setDiagnostics(
          now.state,
          (remarks ?? []).flatMap((one) => diagnosticOf(now.state, one)),
        ),
      );
  }, [remarks, view]);
  const [from, to] = picked ?? [0, 0];
  useEffect(() => {
    const now = view.current;
    if (!now) return;
    const lines = to > 0 && to <= now.state.doc.lines ? markedLines(now.state, from, to) : [];
    now.dispatch({ effects: parts.current.picked.reconfigure(lines) });
    if (to > 0 && from <= now.state.doc.lines && !now.hasFocus)
      now.dispatch({
        effects: EditorView.scrollIntoView(now.state.doc.line(from).from, { y: "nearest", yMargin: 40 }),
      });
  }, [from, to, view]);

  return (
    <div
      ref={place}
      className={`overflow-hidden rounded-md border border-line-strong focus-within:outline-2 focus-within:outline-accent ${isSmall ? "max-h-80 min-h-8" : "h-full"}`}
    />
  );
}

function languageOf(format: Format): Extension {
  return format === "json" ? json() : yaml();
}

function markedLines(state: EditorState, from: number, to: number): Extension {
  const marks = [];
  for (let line = from; line <= to; line += 1)
    marks.push(Decoration.line({ class: "cm-picked" }).range(state.doc.line(line).from));
  return EditorView.decorations.of(Decoration.set(marks));
}

function diagnosticOf(state: EditorState, remark: DocumentProblem): Diagnostic[] {
  if (remark.line < 1 || remark.line > state.doc.lines) return [];
  const line = state.doc.line(remark.line);
  const from = Math.min(line.from + Math.max((remark.column ?? 1) - 1, 0), line.to);
  const word = /^[\w.$-]+/.exec(state.sliceDoc(from, line.to))?.[0].length ?? 0;
  return [{ from, to: word > 0 ? from + word : line.to, severity: remark.severity, ...diagnosticText(remark) }];
}
