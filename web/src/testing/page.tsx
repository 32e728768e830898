/** Open a page of the app on a fake server, as `main.tsx` does in a browser. */
import { QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { act, cleanup, configure, render, screen, waitFor, within } from "@testing-library/react";
import userEvent, { type UserEvent } from "@testing-library/user-event";
import i18next from "i18next";
import { expect, vi } from "vitest";
import { makeClient } from "@/api/client";
import { undoWindow } from "@/features/inbox/heldAnswer";
import { type Language, startLanguages, switchLanguage } from "@/i18n";
import { makeRouter } from "@/router";
import { sharedStreams } from "@/stream/subscribe";
import { local, READY } from "./answers";
import { FakeServer } from "./server";

/** An error with the missing element, the text of the page, and the requests that the fake server did not expect. */
function explainedError(message: string | null, container: Element): Error {
  const text = (container.textContent ?? "").slice(0, TEXT_MAX);
  const error = new Error(`${message?.split("\n")[0]}\n\nThe page: ${text}\n\n${server.unexpected.join("\n")}`);
  error.name = "NotFound";
  return error;
}

const TEXT_MAX = 3_000;

// No test waits for a network, but a busy machine can be slow.
configure({ asyncUtilTimeout: Number(process.env.PATIENCE_MS ?? 60_000), getElementError: explainedError });

export let server = new FakeServer();

/** The responses that every page needs. */
function addDefaultResponses(one: FakeServer): void {
  one.get("/api/me", local);
  one.get("/ready", READY);
  one.get("/api/mentions", { mentions: [], unread: 0 });
  one.post("/api/presence", { people: [] });
  one.get("/api/inbox", { gates: [], next: null });
  one.get("/api/rights", { rights: [] });
  // Pages look up the names of the workflows they show; an empty list makes them show ids.
  one.get("/api/workflows", { workflows: [], next: null });
  one.get("/api/folders", { folders: [] });
}

/** Before each test: a new server that has answered nothing, and an empty browser. */
export function startServer(): void {
  undoWindow.ms = 0;
  server = new FakeServer();
  addDefaultResponses(server);
  // Requests of a page that was left must not reach a real server either.
  vi.stubGlobal("fetch", (...parameters: Parameters<typeof fetch>) => server.fetch(...parameters));
  localStorage.clear();
  sessionStorage.clear();
}

/** After each test: leave the page, and fail where it asked for something that the API does not have. */
export function leavePage(): void {
  cleanup();
  const { unexpected: wrong } = server;
  sharedStreams().restart();
  vi.useRealTimers();
  expect(wrong).toEqual([]);
}

export interface OpenedPage {
  /** Path and query of the current page. */
  address: () => string;
  user: UserEvent;
  back: () => Promise<void>;
  go: (to: string) => Promise<void>;
}

/** Open a page; resolves when it is loaded. */
export async function open(path: string, how: { language?: Language } = {}): Promise<OpenedPage> {
  if (!i18next.isInitialized) await startLanguages();
  await switchLanguage(how.language ?? "en");
  const history = createMemoryHistory({ initialEntries: [path] });
  const router = makeRouter(history);
  const client = makeClient();
  render(
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  );
  await waitFor(() => expect(router.state.status).toBe("idle"));
  return {
    address: () => `${router.state.location.pathname}${router.state.location.searchStr}`,
    user: userEvent.setup({ delay: null, pointerEventsCheck: 0 }),
    back: async () => act(async () => history.back()),
    go: async (to) => act(async () => router.navigate({ to })),
  };
}

/** The page without its menu. */
export const main = () => within(screen.getByRole("main"));

export const dialog = async (name?: string | RegExp) =>
  within(await screen.findByRole("dialog", name === undefined ? {} : { name }));

export const noDialog = () => waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());

/** The rows of a table, including its head. Querying each element by role would take seconds in a long table. */
export const rows = (name: string | RegExp): HTMLElement[] => [
  ...screen.getByRole("table", { name }).querySelectorAll("tr"),
];

/** Wait for a text that can span several elements. */
export const expectText = (text: string) => waitFor(() => expect(document.body.textContent).toContain(text));

/** Replace the whole value of a field. */
export async function fill(user: UserEvent, field: HTMLElement, text: string): Promise<void> {
  await user.clear(field);
  if (text) {
    await user.click(field);
    await user.paste(text);
  }
}
