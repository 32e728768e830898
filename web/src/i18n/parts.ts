/** The texts of a language, from one file for each feature. A part of the interface has one name in all files. */
export function byPart(files: Record<string, Record<string, unknown>>): Record<string, unknown> {
  return Object.assign({}, ...Object.values(files));
}
