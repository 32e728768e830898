/** The words of a language: one file for each part of the interface, whose name begins the names of the words in it. */
export function byPart(files: Record<string, Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(files).map(([path, words]) => [path.slice("./".length, -".json".length), words]),
  );
}
