/** The colours of the page as it is seen, for what is drawn and not styled. */

/** The value of a token, light or dark. */
export function colourOf(token: string): string {
  const root = getComputedStyle(document.documentElement);
  const scheme = root.colorScheme;
  const isDark = scheme === "dark" || (scheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const said = root.getPropertyValue(token).trim();
  const both = /^light-dark\((.+),(.+)\)$/.exec(said);
  return (both ? (both[isDark ? 2 : 1] as string) : said).trim();
}
