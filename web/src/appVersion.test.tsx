import { afterEach, expect, test, vi } from "vitest";
import { compareAppVersion, useServerUpgraded } from "./appVersion";

const pageWith = (script: string) => `<!doctype html><head><script type="module" src="${script}"></script></head>`;

afterEach(() => {
  document.head.querySelector("script")?.remove();
  useServerUpgraded.setState({ isUpgraded: false });
  vi.unstubAllGlobals();
});

function loadedWith(script: string, answer: () => Promise<Response>) {
  const element = document.createElement("script");
  element.type = "module";
  element.setAttribute("src", script);
  document.head.append(element);
  vi.stubGlobal("fetch", vi.fn(answer));
}

test.each([
  ["another script", "/assets/app-2.js", true],
  ["the same script", "/assets/app-1.js", false],
])("the server was upgraded if its page has %s", async (_, script, isUpgraded) => {
  loadedWith("/assets/app-1.js", () => Promise.resolve(new Response(pageWith(script))));
  await compareAppVersion();
  expect(useServerUpgraded.getState().isUpgraded).toBe(isUpgraded);
});

test.each([
  ["does not respond", () => Promise.reject(new TypeError("away"))],
  ["refuses the page", () => Promise.resolve(new Response("", { status: 502 }))],
  ["responds with a page of something else", () => Promise.resolve(new Response("<p>Maintenance</p>"))],
])("nothing is known of a server that %s", async (_, answer) => {
  loadedWith("/assets/app-1.js", answer);
  await compareAppVersion();
  expect(useServerUpgraded.getState().isUpgraded).toBe(false);
});
