/** Completion of expressions and templates at the caret. */
import type { FormulaScope, Name } from "@/features/editor/document/formulaScope";
import type { FormulaSyntax } from "@/features/editor/document/shapes";

export interface CompletionItem {
  label: string;
  kind: "name" | "function" | "keyword" | "block";
  /** The type of a name, or the signature of a function. */
  detail: string;
  about: string;
  /** The text to insert; `|` marks the caret. */
  insert: string;
}

export interface LanguageFunction {
  name: string;
  signature: string;
  about: string;
}

export interface CompletionItems {
  from: number;
  offers: CompletionItem[];
}

const PATH = /(?:[\p{L}_$][\p{L}\p{N}_]*)?(?:\??\.[\p{L}\p{N}_-]*|\[["'][^"'\]]*)*$/u;
const OPEN = /(?:^|[^\\{])(\{\{?|\$\{)(\s*(?:#\w+\s+)?)([^{}]*)$/;
const BLOCK = /\{\{#(\w*)$/;
const KEYWORDS = ["and", "or", "not", "in", "true", "false", "null"];
const BLOCKS = { if: "{{#if |}}{{/if}}", unless: "{{#unless |}}{{/unless}}", each: "{{#each |}}{{this}}{{/each}}" };

/** `before` is the text up to the caret, `after` the text behind it. Null: nothing to complete. */
export function completionsAt(
  before: string,
  after: string,
  spelled: FormulaSyntax,
  known: FormulaScope,
  functions: readonly LanguageFunction[],
  isExplicit: boolean,
): CompletionItems | null {
  if (spelled === "jsonpath") return null;
  if (spelled === "template") return templateCompletions(before, after, known, isExplicit);
  const path = PATH.exec(before)?.[0] ?? "";
  if (!path && !isExplicit) return null;
  const names = namesAt(path, known);
  const from = before.length - names.written.length;
  if (names.isInside || spelled === "path") return { from, offers: names.offers };
  const functionItems = functions.map(
    (one): CompletionItem => ({
      label: one.name,
      kind: "function",
      detail: one.signature.slice(one.name.length),
      about: one.about,
      insert: `${one.name}(|)`,
    }),
  );
  const words = KEYWORDS.map(
    (one): CompletionItem => ({ label: one, kind: "keyword", detail: "", about: "", insert: one }),
  );
  return { from, offers: [...names.offers, ...functionItems, ...words] };
}

function templateCompletions(
  before: string,
  after: string,
  known: FormulaScope,
  isAsked: boolean,
): CompletionItems | null {
  const block = BLOCK.exec(before);
  if (block && known.dialect === "native") {
    const offers = Object.entries(BLOCKS).map(
      ([label, insert]): CompletionItem => ({ label: `#${label}`, kind: "block", detail: "", about: "", insert }),
    );
    return { from: block.index, offers };
  }
  const open = OPEN.exec(before);
  const closing = open?.[1] === "{{" ? "}}" : "}";
  const inner = open?.[3] ?? "";
  const path = PATH.exec(inner)?.[0] ?? "";
  if (open && path === inner) {
    const names = namesAt(path, known);
    const isClosed = /^[^\n{]*\}/.test(after);
    const offers = names.offers.map((one) => ({ ...one, insert: isClosed ? one.insert : one.insert + closing }));
    return { from: before.length - names.written.length, offers };
  }
  if (!isAsked) return null;
  const offers = namesAt("", known).offers.map((one) => ({ ...one, insert: templateVariable(one.insert, known) }));
  return { from: before.length, offers };
}

/** Reference to a name in a template. */
export function templateVariable(name: string, known: FormulaScope): string {
  return known.dialect === "native" ? `{{${name}}}` : `{${name}}`;
}

interface MatchingNames {
  offers: CompletionItem[];
  /** The typed part of the last key. */
  written: string;
  /** Behind a dot or bracket, where only keys are valid. */
  isInside: boolean;
}

function namesAt(path: string, known: FormulaScope): MatchingNames {
  const keys = [...path.matchAll(/(?:^|\??\.|\[["'])([\p{L}\p{N}_$-]*)/gu)].map((one) => one[1] ?? "");
  const isRoot = keys[0] === "$" && keys.length > 1;
  const walked = isRoot ? keys.slice(1) : keys;
  const written = walked.at(-1) ?? "";
  let names: readonly Name[] = known.names;
  for (const key of walked.slice(0, -1)) names = names.find((one) => one.name === key)?.members ?? [];
  const isInside = walked.length > 1;
  return { offers: unique(names).map((one) => itemOf(one, path, isInside)), written, isInside: isInside || isRoot };
}

function unique(names: readonly Name[]): Name[] {
  return [...new Map(names.map((one) => [one.name, one])).values()];
}

function itemOf(name: Name, path: string, isInside: boolean): CompletionItem {
  const isQuoted = /\[["'][^"'\]]*$/.test(path);
  const isPlain = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name.name);
  // Behind a dot, a name with dashes becomes a key in brackets; inserting it removes the dot.
  const insert = isPlain || isQuoted || !isInside ? name.name : `["${name.name}"]`;
  return { label: name.name, kind: "name", detail: name.label || name.type, about: name.about, insert };
}
