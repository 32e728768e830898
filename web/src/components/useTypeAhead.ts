import { useRef } from "react";

const PAUSE_MS = 700;

interface TypeAhead {
  /** Return the letters typed without a pause, including this one. */
  add: (letter: string) => string;
  /** Return whether the next letter would extend the previous ones. */
  isContinuing: () => boolean;
}

/** Type-ahead in a list: letters in quick succession form one prefix. */
export function useTypeAhead(): TypeAhead {
  const typed = useRef({ letters: "", at: Number.NEGATIVE_INFINITY });
  const isContinuing = () => performance.now() - typed.current.at < PAUSE_MS;
  return {
    isContinuing: isContinuing,
    add: (letter) => {
      typed.current = { letters: (isContinuing() ? typed.current.letters : "") + letter, at: performance.now() };
      return typed.current.letters;
    },
  };
}

/** Find the next name with this prefix, from `at` on and around the end; a single letter starts after the current
 * entry. */
export function nextWithPrefix<T>(
  all: readonly T[],
  at: number,
  letters: string,
  name: (one: T) => string,
): T | undefined {
  const from = letters.length > 1 ? at : at + 1;
  return [...all.slice(from), ...all.slice(0, from)].find((one) => name(one).toLowerCase().startsWith(letters));
}
