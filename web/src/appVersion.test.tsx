import { afterEach, expect, test, vi } from "vitest";
import { compareAppVersion, useServerUpgraded } from "./appVersion";

const pageWith = (script: string) => `<!doctype html><head><script type="module" src="${script}"></script></head>`;

afterEach(() => {
  useServerUpgraded.setState({ isUpgraded: false });
  vi.unstubAllGlobals();
});

/** Compare a page that was loaded with this script. */
function compare(script: string, answer: () => Promise<Response>) {
  vi.stubGlobal("fetch", vi.fn(answer));
  return compareAppVersion(new DOMParser().parseFromString(pageWith(script), "text/html"));
}

test.each([
  ["another script", "/assets/app-2.js", true],
  ["the same script", "/assets/app-1.js", false],
])("the server was upgraded if its page has %s", async (_, script, isUpgraded) => {
  await compare("/assets/app-1.js", () => Promise.resolve(new Response(pageWith(script))));
  expect(useServerUpgraded.getState().isUpgraded).toBe(isUpgraded);
});

test.each([
  ["does not respond", () => Promise.reject(new TypeError("away"))],
  ["refuses the page", () => Promise.resolve(new Response("", { status: 502 }))],
  ["responds with a page of something else", () => Promise.resolve(new Response("<p>Maintenance</p>"))],
])("nothing is known of a server that %s", async (_, answer) => {
  await compare("/assets/app-1.js", answer);
  expect(useServerUpgraded.getState().isUpgraded).toBe(false);
});
