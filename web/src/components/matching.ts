/** Search by a few letters. Return the matches with the best first: at the start of the text, at the start of a word,
 * inside a word, scattered. */
export function bestMatches<T>(searchText: string, all: readonly T[], texts: (one: T) => readonly string[]): T[] {
  const letters = plain(searchText);
  if (!letters) return [...all];
  return all
    .map((one, at) => ({
      one,
      at,
      score: Math.max(...texts(one).map((text, nth) => scoreOf(letters, plain(text)) - nth)),
    }))
    .filter((found) => found.score > 0)
    .sort((a, b) => b.score - a.score || a.at - b.at)
    .map((found) => found.one);
}

const plain = (text: string) => text.toLowerCase().trim();

/** 0 means no match. */
function scoreOf(letters: string, text: string): number {
  const at = text.indexOf(letters);
  if (at === 0) return 1000 - text.length / 1000;
  if (at > 0) return (/[\s_.-]/.test(text[at - 1] ?? "") ? 800 : 600) - text.length / 1000;
  // Scattered letters are a useful match in names, but not in long texts.
  if (text.length > 60) return 0;
  let from = 0;
  let spread = 0;
  for (const letter of letters) {
    const next = text.indexOf(letter, from);
    if (next < 0) return 0;
    spread += next - from;
    from = next + 1;
  }
  return Math.max(300 - spread, 1);
}
