/** Parse the query of an address, as far as a page understands it. Anyone can write an address, so unknown values are
 * dropped. */

type Search = Record<string, unknown>;

/** Maximum lengths of search text and of names. */
const WORDS_MAX = 200;
const NAME_MAX = 500;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Wrap a parser so that unknown parameters become undefined; otherwise the router would keep them. */
export function parseSearch<T extends object>(read: (search: Search) => T): (search: Search) => T {
  return (search) => ({ ...Object.fromEntries(Object.keys(search).map((name) => [name, undefined])), ...read(search) });
}

/** Return whether any filter is set. */
export function hasFilters(search: object): boolean {
  return Object.values(search).some((value) => value !== undefined);
}

/** The router parses text that looks like a number; convert it back. */
const textIn = (value: unknown) =>
  (typeof value === "string" && value !== "") || typeof value === "number" ? String(value).slice(0, NAME_MAX) : null;

export function textsOf<Name extends string>(search: Search, ...names: Name[]): { [name in Name]?: string } {
  const found = names.flatMap((name) => {
    const text = textIn(search[name]);
    return text === null ? [] : [[name, text]];
  });
  return Object.fromEntries(found) as { [name in Name]?: string };
}

/** The search text. */
export function searchTextOf(search: Search): { q?: string } {
  const { q } = textsOf(search, "q");
  return q === undefined ? {} : { q: q.slice(0, WORDS_MAX) };
}

export function daysOf<Name extends string>(search: Search, ...names: Name[]): { [name in Name]?: string } {
  const isDay = (value: unknown) => typeof value === "string" && DAY.test(value) && !Number.isNaN(Date.parse(value));
  return textsOf(search, ...names.filter((name) => isDay(search[name])));
}

/** One text or several. */
export function listOf<Name extends string>(name: Name, value: unknown): { [one in Name]?: string[] } {
  const found = [value].flat().flatMap((one) => textIn(one) ?? []);
  return (found.length === 0 ? {} : { [name]: found }) as { [one in Name]?: string[] };
}

export function oneOf<Name extends string, T extends string>(
  name: Name,
  value: unknown,
  known: readonly T[],
): { [one in Name]?: T } {
  const found = known.find((one) => one === value);
  return (found === undefined ? {} : { [name]: found }) as { [one in Name]?: T };
}
