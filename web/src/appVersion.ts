/** Does the server have another version of the app than this page? */
import { create } from "zustand";

/** True when the server was upgraded after the page was loaded. */
export const useServerUpgraded = create<{ isUpgraded: boolean }>()(() => ({ isUpgraded: false }));

/** Compare the script of this page with the one of the server's page: its name has a hash of its content. Call it after
 * a reconnect: a server does not change its app while it runs. */
export async function compareAppVersion(page = document): Promise<void> {
  const loaded = scriptOf(page);
  if (loaded === null) return;
  try {
    const answer = await fetch("/", { cache: "no-store" });
    const current = answer.ok ? scriptOf(new DOMParser().parseFromString(await answer.text(), "text/html")) : null;
    if (current !== null) useServerUpgraded.setState({ isUpgraded: current !== loaded });
  } catch {
    // The server is away again; the next reconnect asks again.
  }
}

function scriptOf(page: Document): string | null {
  return page.querySelector('script[type="module"][src]')?.getAttribute("src") ?? null;
}
