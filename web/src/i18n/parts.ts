/** Merge the texts of a language from one file per feature. Top-level keys must be unique across files. */
export function byPart(files: Record<string, Record<string, unknown>>): Record<string, unknown> {
  return Object.assign({}, ...Object.values(files));
}
