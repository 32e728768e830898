/** Reads the parts of the app that pages are made of, also over a line that is away for a while. */
import { create } from "zustand";

const AGAIN_MS = 1000;

/** Whether a part is asked for again because nobody answers. */
export const useServerAway = create<{ isAway: boolean }>()(() => ({ isAway: false }));

/** Resolves with what is read once the server is there. Rejects where it is there, and the part is not: then the app is
 * an older one than the server has, and the router loads it anew. Done while nobody answers, that would put an error
 * of the browser in the place of the app and of all that it keeps. */
export async function loadPart<T>(read: () => Promise<T>, answers: () => Promise<boolean> = isThere): Promise<T> {
  try {
    return await read();
  } catch (why) {
    if (await answers()) throw why;
  }
  useServerAway.setState({ isAway: true });
  while (!(await answers())) await new Promise((go) => setTimeout(go, AGAIN_MS));
  useServerAway.setState({ isAway: false });
  return read();
}

function isThere(): Promise<boolean> {
  return fetch("/favicon.svg", { cache: "no-store" }).then(
    (answer) => answer.ok,
    () => false,
  );
}
