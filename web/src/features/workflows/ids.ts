const LENGTH_MAX = 60;

/** Derive an id from a name: its Latin letters without accents and its digits, words joined by dashes. */
export function idOf(name: string): string {
  const id = name
    .replaceAll("ß", "ss")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, LENGTH_MAX)
    .replace(/^-+|-+$/g, "");
  return id || (/[\p{L}\p{N}]/u.test(name) ? "workflow" : "");
}

/** Prefix of the ids of built-in workflows. */
export const BUILT_IN_PREFIX = "builtin:";
