/** How much room the label of an arrow takes, estimated from its letters: nothing is measured. */

export const LABEL = { height: 20, widest: 176, least: 30 } as const;
const LETTER = 6.3;
const WIDE_LETTER = 11.5;
const PADDING = 12;

/** How wide words are, about. */
export function widthOf(words: string): number {
  let width = PADDING;
  for (const letter of words) {
    width += (letter.codePointAt(0) ?? 0) > 0x2e7f ? WIDE_LETTER : LETTER;
    if (width >= LABEL.widest) return LABEL.widest;
  }
  return Math.ceil(width);
}

/** Room for words between two columns, in steps: a letter more does not move the picture. */
export function roomFor(words: string): number {
  return words ? Math.min(LABEL.widest, Math.ceil(widthOf(words) / 40) * 40) : 0;
}
