/** Load lazy parts of the app, even while the server is unreachable for a while. */
import { create } from "zustand";

const AGAIN_MS = 1000;

/** True while a part cannot be loaded because the server does not respond. */
export const useServerUnreachable = create<{ isUnreachable: boolean }>()(() => ({ isUnreachable: false }));

/** Load a part, waiting until the server responds. Throws if the server responds but does not have the part: it then
 * has a newer version of the app, and the router reloads the page. A reload while the server is away would replace the
 * app and its state with an error page of the browser. */
export async function loadPart<T>(read: () => Promise<T>, answers: () => Promise<boolean> = isThere): Promise<T> {
  try {
    return await read();
  } catch (why) {
    if (await answers()) throw why;
  }
  useServerUnreachable.setState({ isUnreachable: true });
  while (!(await answers())) await new Promise((go) => setTimeout(go, AGAIN_MS));
  useServerUnreachable.setState({ isUnreachable: false });
  return read();
}

function isThere(): Promise<boolean> {
  return fetch("/favicon.svg", { cache: "no-store" }).then(
    (answer) => answer.ok,
    () => false,
  );
}
