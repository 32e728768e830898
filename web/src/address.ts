/** What an address says behind its question mark, as far as a page understands it: anybody can write an address. */

type Search = Record<string, unknown>;

/** What is looked for, and how things are called. */
const WORDS_MAX = 200;
const NAME_MAX = 500;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The router hands on as it stands what a page leaves out: so that is said to be nothing. */
export function understood<T extends object>(read: (search: Search) => T): (search: Search) => T {
  return (search) => ({ ...Object.fromEntries(Object.keys(search).map((name) => [name, undefined])), ...read(search) });
}

/** Whether it says anything. */
export function saysSomething(search: object): boolean {
  return Object.values(search).some((value) => value !== undefined);
}

/** A number is a text that looks like one. */
const textIn = (value: unknown) =>
  (typeof value === "string" && value !== "") || typeof value === "number" ? String(value).slice(0, NAME_MAX) : null;

export function textsOf<Name extends string>(search: Search, ...names: Name[]): { [name in Name]?: string } {
  const found = names.flatMap((name) => {
    const text = textIn(search[name]);
    return text === null ? [] : [[name, text]];
  });
  return Object.fromEntries(found) as { [name in Name]?: string };
}

/** What is looked for. */
export function wordsOf(search: Search): { q?: string } {
  const { q } = textsOf(search, "q");
  return q === undefined ? {} : { q: q.slice(0, WORDS_MAX) };
}

export function daysOf<Name extends string>(search: Search, ...names: Name[]): { [name in Name]?: string } {
  const isDay = (value: unknown) => typeof value === "string" && DAY.test(value) && !Number.isNaN(Date.parse(value));
  return textsOf(search, ...names.filter((name) => isDay(search[name])));
}

/** One text, or several. */
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
