/** Make a foreign name safe inside a sentence: remove invisible characters and line breaks, isolate right-to-left text
 * so that it does not reorder the sentence, and limit the length. */
const INVISIBLE = /[\u00AD\u061C\u180E\u200B\u200E\u200F\u202A-\u202E\u2060\u2066-\u2069\uFEFF]/g;
const BREAKS = /[\p{Cc}\u2028\u2029]+/gu;
const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u;
const LETTERS_MAX = 240;
const END_LETTERS = 40;

export function isolated(name: string): string {
  const line = cut(name.replace(INVISIBLE, "").replace(BREAKS, " "));
  return RIGHT_TO_LEFT.test(line) ? `\u2068${line}\u2069` : line;
}

/** Cut a name to a maximum length, keeping its start and end. */
export function cut(line: string): string {
  if (line.length <= LETTERS_MAX) return line;
  const letters = [...line.slice(0, LETTERS_MAX * 2)];
  if (letters.length <= LETTERS_MAX && line.length <= LETTERS_MAX * 2) return line;
  const end = [...line.slice(-END_LETTERS * 2)].slice(-END_LETTERS);
  return `${letters.slice(0, LETTERS_MAX - END_LETTERS).join("")}…${end.join("")}`;
}
