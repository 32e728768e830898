/** Translations of CodeMirror's own texts, such as its search panel. */
import { EditorState, type Extension } from "@codemirror/state";
import type { TFunction } from "i18next";

/** CodeMirror's phrases and our translation keys. */
const PHRASES = {
  Find: "find",
  Replace: "replaceBy",
  next: "next",
  previous: "previous",
  all: "all",
  "match case": "matchCase",
  regexp: "regexp",
  "by word": "byWord",
  replace: "replace",
  "replace all": "replaceAll",
  close: "close",
  "Go to line": "goToLine",
  go: "go",
  "current match": "currentMatch",
  "on line": "onLine",
  "replaced match on line $": "replacedOne",
  "replaced $ matches": "replacedAll",
  "Folded lines": "foldedLines",
  "Unfolded lines": "unfoldedLines",
  to: "to",
  "folded code": "foldedCode",
  unfold: "unfold",
  "Fold line": "foldLine",
  "Unfold line": "unfoldLine",
  Completions: "completions",
  "Control character": "controlCharacter",
  "Selection deleted": "selectionDeleted",
  Diagnostics: "diagnostics",
  "No diagnostics": "noDiagnostics",
  "$ unchanged lines": "unchangedLines",
} as const;

export function editorPhrases(t: TFunction): Extension {
  const translated = Object.entries(PHRASES).map(([phrase, word]) => [phrase, t(`code.${word}`)]);
  return EditorState.phrases.of(Object.fromEntries(translated));
}
