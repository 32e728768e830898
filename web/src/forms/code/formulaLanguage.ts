/** Syntax highlighting of expressions and templates. */
import { StreamLanguage, type StringStream } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import type { FormulaSyntax } from "@/features/editor/document/shapes";

const WORDS = /^(?:and|or|not|in|is|if|else|for)\b/;
const VALUES = /^(?:true|false|null|True|False|None|undefined)\b/;

function expressionToken(stream: StringStream): string | null {
  if (stream.eatSpace()) return null;
  if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
  if (stream.match(/^\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number";
  if (stream.match(VALUES)) return "bool";
  if (stream.match(WORDS)) return "keyword";
  if (stream.match(/^[\p{L}_$][\p{L}\p{N}_]*(?=\s*\()/u)) return "variableName.function";
  if (stream.match(/^[\p{L}_$][\p{L}\p{N}_]*/u)) return "variableName";
  stream.next();
  return null;
}

interface TemplateState {
  isOpen: boolean;
}

const TEMPLATE = StreamLanguage.define<TemplateState>({
  startState: () => ({ isOpen: false }),
  token(stream, state) {
    if (state.isOpen) {
      if (stream.match(/^\}{1,3}/)) {
        state.isOpen = false;
        return "brace.special";
      }
      stream.next();
      stream.eatWhile(/[^{}]/);
      return "brace.special";
    }
    if (stream.match(/^\\\{/)) return null;
    if (stream.match(/^(?:\$\{|\{\{\{?|\{)(?=\s*[\p{L}_$@#/!^])/u)) {
      state.isOpen = /^[^{}\n]*\}/.test(stream.string.slice(stream.pos));
      return state.isOpen ? "brace.special" : null;
    }
    stream.next();
    stream.eatWhile(/[^{\\$]/);
    return null;
  },
});

const EXPRESSION = StreamLanguage.define({ token: expressionToken });

export function languageOf(spelled: FormulaSyntax): Extension {
  return spelled === "template" ? TEMPLATE : EXPRESSION;
}
