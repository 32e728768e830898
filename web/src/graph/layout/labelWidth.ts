/** Estimated size of arrow labels from their characters; nothing is measured in the DOM. */

export const LABEL = { height: 20, widest: 176, least: 30 } as const;
const LETTER = 6.3;
const WIDE_LETTER = 11.5;
const PADDING = 12;

/** Approximate width of a label. */
export function widthOf(words: string): number {
  let width = PADDING;
  for (const letter of words) {
    width += (letter.codePointAt(0) ?? 0) > 0x2e7f ? WIDE_LETTER : LETTER;
    if (width >= LABEL.widest) return LABEL.widest;
  }
  return Math.ceil(width);
}

/** Space for a label between two columns, in steps of 40 px, so that one more letter does not move the picture. */
export function labelSpace(words: string): number {
  return words ? Math.min(LABEL.widest, Math.ceil(widthOf(words) / 40) * 40) : 0;
}
