/** What could stand at the caret of a formula. */
import type { Known, Name } from "@/features/editor/document/known";
import type { FormulaSyntax } from "@/features/editor/document/shapes";

export interface Offer {
  label: string;
  kind: "name" | "function" | "keyword" | "block";
  /** The type of a name, the signature of a function. */
  detail: string;
  about: string;
  /** What is written, where it is not the label; `|` is where the caret goes. */
  insert: string;
}

export interface Entry {
  name: string;
  signature: string;
  about: string;
}

export interface Offers {
  from: number;
  offers: Offer[];
}

const PATH = /(?:[\p{L}_$][\p{L}\p{N}_]*)?(?:\??\.[\p{L}\p{N}_-]*|\[["'][^"'\]]*)*$/u;
const OPEN = /(?:^|[^\\{])(\{\{?|\$\{)(\s*(?:#\w+\s+)?)([^{}]*)$/;
const BLOCK = /\{\{#(\w*)$/;
const KEYWORDS = ["and", "or", "not", "in", "true", "false", "null"];
const BLOCKS = { if: "{{#if |}}{{/if}}", unless: "{{#unless |}}{{/unless}}", each: "{{#each |}}{{this}}{{/each}}" };

/** `before` is the text up to the caret, `after` what follows it. Null: nothing is offered here. */
export function offersAt(
  before: string,
  after: string,
  spelled: FormulaSyntax,
  known: Known,
  functions: readonly Entry[],
  isAsked: boolean,
): Offers | null {
  if (spelled === "jsonpath") return null;
  if (spelled === "template") return inTemplate(before, after, known, isAsked);
  const path = PATH.exec(before)?.[0] ?? "";
  if (!path && !isAsked) return null;
  const names = namesAt(path, known);
  const from = before.length - names.written.length;
  if (names.isInside || spelled === "path") return { from, offers: names.offers };
  const called = functions.map(
    (one): Offer => ({
      label: one.name,
      kind: "function",
      detail: one.signature.slice(one.name.length),
      about: one.about,
      insert: `${one.name}(|)`,
    }),
  );
  const words = KEYWORDS.map((one): Offer => ({ label: one, kind: "keyword", detail: "", about: "", insert: one }));
  return { from, offers: [...names.offers, ...called, ...words] };
}

function inTemplate(before: string, after: string, known: Known, isAsked: boolean): Offers | null {
  const block = BLOCK.exec(before);
  if (block && known.dialect === "native") {
    const offers = Object.entries(BLOCKS).map(
      ([label, insert]): Offer => ({ label: `#${label}`, kind: "block", detail: "", about: "", insert }),
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
  const offers = namesAt("", known).offers.map((one) => ({ ...one, insert: variable(one.insert, known) }));
  return { from: before.length, offers };
}

/** A name as it stands in a template. */
export function variable(name: string, known: Known): string {
  return known.dialect === "native" ? `{{${name}}}` : `{${name}}`;
}

interface Found {
  offers: Offer[];
  /** What of the last key is written already. */
  written: string;
  /** Behind a dot or bracket: only keys fit. */
  isInside: boolean;
}

function namesAt(path: string, known: Known): Found {
  const keys = [...path.matchAll(/(?:^|\??\.|\[["'])([\p{L}\p{N}_$-]*)/gu)].map((one) => one[1] ?? "");
  const isRoot = keys[0] === "$" && keys.length > 1;
  const walked = isRoot ? keys.slice(1) : keys;
  const written = walked.at(-1) ?? "";
  let names: readonly Name[] = known.names;
  for (const key of walked.slice(0, -1)) names = names.find((one) => one.name === key)?.inside ?? [];
  const isInside = walked.length > 1;
  return { offers: unique(names).map((one) => offerOf(one, path, isInside)), written, isInside: isInside || isRoot };
}

function unique(names: readonly Name[]): Name[] {
  return [...new Map(names.map((one) => [one.name, one])).values()];
}

function offerOf(name: Name, path: string, isInside: boolean): Offer {
  const isQuoted = /\[["'][^"'\]]*$/.test(path);
  const isPlain = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name.name);
  // Behind a dot a name with dashes becomes a key in brackets; whoever inserts it takes the dot away.
  const insert = isPlain || isQuoted || !isInside ? name.name : `["${name.name}"]`;
  return { label: name.name, kind: "name", detail: name.called || name.type, about: name.about, insert };
}
