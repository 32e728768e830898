/** CodeMirror theme with the colours of the page, light and dark. */
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const THEME = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--ink)", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", fontSize: "12.5px", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--ink-faint)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLineGutter": { color: "var(--ink)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--accent-soft) !important" },
  ".cm-picked": { backgroundColor: "var(--accent-soft)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    boxShadow: "0 4px 16px #0003",
    zIndex: "60",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--font-mono)", maxHeight: "16em" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 8px !important", lineHeight: "1.5" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent-soft) !important",
    color: "var(--ink) !important",
  },
  ".cm-completionDetail": { color: "var(--ink-faint)", fontStyle: "normal", marginLeft: "1em" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
  ".cm-completionInfo": { fontFamily: "var(--font-sans)", padding: "6px 10px", maxWidth: "22em" },
  ".cm-diagnostic": { fontFamily: "var(--font-sans)", padding: "4px 10px", whiteSpace: "pre-line" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--failed)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--waiting)" },
  ".cm-diagnostic-info": { borderLeft: "3px solid var(--accent)" },
  ".cm-lintRange-error": { textDecoration: "underline wavy var(--failed)", backgroundImage: "none" },
  ".cm-lintRange-warning": { textDecoration: "underline wavy var(--waiting)", backgroundImage: "none" },
  ".cm-lintRange-info": { textDecoration: "underline dotted var(--accent)", backgroundImage: "none" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--ink)", borderColor: "var(--line)" },
  ".cm-panel.cm-search": { padding: "6px 8px" },
  ".cm-panel input, .cm-panel button": {
    font: "inherit",
    minHeight: "24px",
    color: "var(--ink)",
    backgroundColor: "var(--surface)",
    backgroundImage: "none",
    border: "1px solid var(--line-strong)",
    borderRadius: "4px",
  },
  ".cm-searchMatch": { backgroundColor: "var(--waiting-soft)" },
  ".cm-searchMatch-selected": { outline: "1px solid var(--waiting)" },
});

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null], color: "var(--accent)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--done)" },
  { tag: tags.number, color: "var(--waiting)" },
  { tag: tags.comment, color: "var(--ink-faint)", fontStyle: "italic" },
  { tag: tags.function(tags.variableName), color: "var(--accent)", fontWeight: "600" },
  { tag: tags.variableName, color: "var(--ink)" },
  { tag: tags.special(tags.brace), color: "var(--accent)", backgroundColor: "var(--accent-soft)" },
  { tag: tags.invalid, color: "var(--failed)" },
]);

export const EDITOR_THEME: Extension = [THEME, syntaxHighlighting(COLOURS)];
