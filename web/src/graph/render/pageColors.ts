/** Colours of the page for canvas and SVG, which cannot use CSS variables. */

/** Value of a CSS variable in the present theme. */
export function colourOf(token: string): string {
  const root = getComputedStyle(document.documentElement);
  const scheme = root.colorScheme;
  const isDark = scheme === "dark" || (scheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const value = root.getPropertyValue(token).trim();
  const both = /^light-dark\((.+),(.+)\)$/.exec(value);
  return (both ? (both[isDark ? 2 : 1] as string) : value).trim();
}
