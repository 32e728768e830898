const LENGTH_MAX = 60;

/** An id made of a name: its Latin letters without accents and its digits, words joined by dashes. */
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

/** How the ids of those begin that come with the product. */
export const BUILT_IN = "builtin:";
