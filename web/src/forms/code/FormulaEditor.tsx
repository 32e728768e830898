/**
 * Editor for one expression or template: highlighting, completion (Ctrl-Space), and checks by the server while typing.
 * Tab moves to the next field.
 */
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  closeCompletion,
  completionKeymap,
  completionStatus,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { type Diagnostic, linter } from "@codemirror/lint";
import { EditorState, type Extension, Prec } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { useQuery } from "@tanstack/react-query";
import { type RefObject, useEffect, useLayoutEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { FormulaScope } from "@/features/editor/document/formulaScope";
import type { FormulaSyntax } from "@/features/editor/document/shapes";
import { useServerTexts } from "@/i18n/given";
import { DRAGGED_PATH } from "@/values/tree";
import { type CompletionItem, completionsAt, type LanguageFunction, templateVariable } from "./completion";
import { diagnosticText } from "./diagnosticText";
import { EDITOR_THEME } from "./editorTheme";
import { languageOf } from "./formulaLanguage";
import { checkFormula, functionsOfLanguage, unitsAt } from "./formulas";
import { editorPhrases } from "./phrases";
import { useCodeMirror } from "./useCodeMirror";

const DEBOUNCE_MS = 300;

export interface FormulaProps {
  value: string;
  onChange: (text: string) => void;
  spelled: FormulaSyntax;
  known: FormulaScope;
  labelledBy: string;
  describedBy?: string | undefined;
  /** Placeholder of the empty editor. */
  hint?: string | undefined;
  isWrong?: boolean;
  /** Fill the height of the container. */
  isTall?: boolean;
  /** The editor stores a function here that inserts text at the caret. */
  inserter?: RefObject<((text: string) => void) | null>;
}

interface CurrentProps {
  known: FormulaScope;
  functions: readonly LanguageFunction[];
  about: (name: string) => string;
  meaning: (code: string) => string | null;
}

export default function FormulaEditor(props: FormulaProps) {
  const { value, onChange, spelled, known, labelledBy, describedBy, isWrong = false, isTall = false, inserter } = props;
  const { t } = useTranslation();
  const { meaning } = useServerTexts();
  const functions = useQuery(functionsOfLanguage()).data;
  const now = useRef<CurrentProps>({ known, functions: [], about: String, meaning });
  useLayoutEffect(() => {
    now.current = {
      known,
      functions: functions ?? [],
      about: (about) => (about.includes(" ") ? about : t(`variable.${about}`, t("variable.by", { node: about }))),
      meaning,
    };
  });
  const { container: place, view } = useCodeMirror(value, onChange, () => [
    editorPhrases(t),
    history(),
    bracketMatching(),
    EditorView.lineWrapping,
    props.hint ? placeholder(props.hint) : [],
    languageOf(spelled),
    // Must precede the key bindings of completion.
    Prec.highest(keymap.of([{ key: "Escape", run: dropPending }])),
    autocompletion({
      override: [(context) => completionsFor(context, spelled, now.current)],
      icons: false,
      interactionDelay: 0,
    }),
    linter(async (on) => diagnosticsOf(on.state.doc.toString(), spelled, now.current), { delay: DEBOUNCE_MS }),
    spelled === "template" ? [] : oneLine(),
    keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
    EditorView.domEventHandlers({ drop: (event, editor) => dropPath(event, editor, spelled, now.current.known) }),
    EditorView.contentAttributes.of({
      "aria-labelledby": labelledBy,
      ...(describedBy ? { "aria-describedby": describedBy } : {}),
      spellcheck: spelled === "template" ? "true" : "false",
    }),
    EDITOR_THEME,
  ]);
  useEffect(() => {
    view.current?.contentDOM.setAttribute("aria-invalid", String(isWrong));
  }, [isWrong, view]);
  useEffect(() => {
    if (!inserter) return;
    inserter.current = (text) => {
      const editor = view.current;
      if (!editor) return;
      editor.dispatch(editor.state.replaceSelection(text), { userEvent: "input" });
      editor.focus();
    };
  }, [inserter, view]);
  const height = isTall ? "h-full" : spelled === "template" ? "min-h-16 max-h-96 resize-y" : "min-h-8 max-h-48";
  return (
    <div
      ref={place}
      className={`overflow-auto rounded-md border bg-surface focus-within:outline-2 focus-within:outline-accent ${isWrong ? "border-failed" : "border-line-strong"} ${height}`}
    />
  );
}

/** Insert a dragged value where it is dropped. */
function dropPath(event: DragEvent, view: EditorView, spelled: FormulaSyntax, known: FormulaScope): boolean {
  const path = event.dataTransfer?.getData(DRAGGED_PATH);
  if (!path) return false;
  event.preventDefault();
  const at = view.posAtCoords({ x: event.clientX, y: event.clientY }) ?? view.state.doc.length;
  const insert = spelled === "template" ? templateVariable(path, known) : path;
  view.dispatch({ changes: { from: at, insert }, selection: { anchor: at + insert.length }, userEvent: "input.drop" });
  view.focus();
  return true;
}

/** Escape closes a pending completion without being consumed, so that the same key also leaves the field. */
function dropPending(view: EditorView): boolean {
  if (completionStatus(view.state) === "pending") closeCompletion(view);
  return false;
}

/** Join the lines of pasted text. */
function oneLine(): Extension {
  return EditorState.transactionFilter.of((change) => {
    if (!change.docChanged || change.newDoc.lines < 2) return change;
    const text = change.newDoc.toString().replaceAll(/\s*\n\s*/g, " ");
    const isEnter = change.isUserEvent("input") && change.newDoc.length - change.startState.doc.length === 1;
    if (isEnter) return [];
    return [{ changes: { from: 0, to: change.startState.doc.length, insert: text } }];
  });
}

function completionsFor(
  context: CompletionContext,
  spelled: FormulaSyntax,
  now: CurrentProps,
): CompletionResult | null {
  const before = context.state.sliceDoc(0, context.pos);
  const after = context.state.sliceDoc(context.pos, context.pos + 200);
  const found = completionsAt(before, after, spelled, now.known, now.functions, context.explicit);
  if (!found || found.offers.length === 0) return null;
  const options = found.offers.map((one, at): Completion => completionOf(one, found.offers.length - at, now));
  return { from: found.from, options, validFor: /^[\p{L}\p{N}_$#-]*$/u };
}

function completionOf(offer: CompletionItem, order: number, now: CurrentProps): Completion {
  const about = offer.kind === "name" && offer.about ? now.about(offer.about) : offer.about;
  return {
    label: offer.label,
    detail: offer.detail,
    ...(about ? { info: about } : {}),
    boost: offer.kind === "name" ? Math.min(99, order) : offer.kind === "function" ? -10 : -20,
    apply: (view, _, from, to) => {
      const isBracket = offer.insert.startsWith("[") && view.state.sliceDoc(from - 1, from) === ".";
      const caret = offer.insert.indexOf("|");
      const insert = offer.insert.replace("|", "");
      const start = isBracket ? from - 1 : from;
      view.dispatch({
        changes: { from: start, to, insert },
        selection: { anchor: start + (caret < 0 ? insert.length : caret) },
        userEvent: "input.complete",
      });
    },
  };
}

async function diagnosticsOf(text: string, spelled: FormulaSyntax, now: CurrentProps): Promise<Diagnostic[]> {
  if (!text.trim()) return [];
  try {
    const checked = await checkFormula(text, spelled, now.known);
    return checked.problems.map((one) => {
      const from = Math.min(unitsAt(text, one.offset), text.length);
      return {
        from,
        to: Math.min(unitsAt(text, one.offset + one.length), text.length),
        severity: one.severity === "note" ? "info" : one.severity,
        ...diagnosticText({ ...one, meaning: now.meaning(one.code) }),
      };
    });
  } catch {
    // The check of the whole workflow reports that the server is unreachable.
    return [];
  }
}
