import { useRef } from "react";

const TOGETHER_MS = 700;

interface TypedLetters {
  /** What was typed without a pause, with this letter. */
  with: (letter: string) => string;
  /** Whether a letter goes on with what was typed just now. */
  isGoingOn: () => boolean;
}

/** Letters that go to a name in a list: those that follow each other quickly are one beginning of it. */
export function useTypedLetters(): TypedLetters {
  const typed = useRef({ letters: "", at: Number.NEGATIVE_INFINITY });
  const isGoingOn = () => performance.now() - typed.current.at < TOGETHER_MS;
  return {
    isGoingOn,
    with: (letter) => {
      typed.current = { letters: (isGoingOn() ? typed.current.letters : "") + letter, at: performance.now() };
      return typed.current.letters;
    },
  };
}

/** The next name that begins so, from `at` on, around the end; one letter alone goes on from the one it is at. */
export function begun<T>(all: readonly T[], at: number, letters: string, name: (one: T) => string): T | undefined {
  const from = letters.length > 1 ? at : at + 1;
  return [...all.slice(from), ...all.slice(0, from)].find((one) => name(one).toLowerCase().startsWith(letters));
}
