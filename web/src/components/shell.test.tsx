import { focusManager } from "@tanstack/react-query";
import { act, screen, waitFor } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { entry, keyed, noModels } from "@/testing/answers";
import { fill, main, open, server } from "@/testing/page";
import { refusal } from "@/testing/server";

const lists = () => {
  server.get("/api/workflows/executions", { executions: [entry("exec-1")], next: null });
  server.get("/api/schedules", { schedules: [], next: null });
  server.get("/api/settings/keys", { keys: [], next: null });
  server.get("/api/chat/workflows", { workflows: [], next: null });
  server.get("/api/sessions", { sessions: [], next: null });
  server.get("/api/workflows/{id}", ({ at }) => refusal(404, "unknown-workflow", `there is no workflow '${at.id}'`));
  server.get("/api/workflows/{id}/versions", refusal(404, "unknown-workflow", "there is no such workflow"));
  const noExecution = refusal(404, "unknown-execution", "there is no such execution");
  server.get("/api/workflows/executions/{eid}", noExecution);
  server.get("/api/workflows/executions/{eid}/events", noExecution);
  server.get("/api/workflows/executions/{eid}/workflow", noExecution);
};

describe("shell", () => {
  it("sets the document title of each page", async () => {
    lists();
    const { go } = await open("/workflows");
    for (const name of ["Workflows", "Executions", "Inbox", "Chat", "Schedules"]) {
      await go(`/${name.toLowerCase()}`);
      await waitFor(() => expect(document.title).toBe(`${name} · Pointsman`));
    }
  });

  it("marks the current page in the menu", async () => {
    lists();
    const { user, address } = await open("/schedules");
    await user.click(await screen.findByRole("button", { name: "More: Schedules" }));
    await user.click(await screen.findByRole("menuitem", { name: "Keys" }));
    await waitFor(() => expect(address()).toBe("/keys"));
    await screen.findByRole("button", { name: "More: Keys" });
    await user.click(screen.getByRole("link", { name: "Workflows" }));
    await screen.findByRole("button", { name: "More" });
  });

  it("links to the documentation of this server in the language of the page", async () => {
    const { user } = await open("/workflows", { language: "de" });
    await user.click(await screen.findByRole("button", { name: "Hilfe" }));
    const link = await screen.findByRole("menuitem", { name: "Dokumentation" });
    expect(link.getAttribute("href")).toBe("/docs/");
    expect(screen.getByRole("menuitem", { name: "API-Referenz" }).getAttribute("href")).toBe("/api/docs");
  });

  it("links to the documentation of the present page", async () => {
    lists();
    const { user, go } = await open("/schedules");
    for (const [page, address] of [
      ["/schedules", "/docs/how-to/triggers/"],
      ["/executions", "/docs/how-to/watching/"],
      ["/executions/exec-1", "/docs/how-to/life-of-an-execution/"],
    ] as const) {
      await go(page);
      await user.click(await screen.findByRole("button", { name: "Help" }));
      const link = await screen.findByRole("menuitem", { name: "Help with this page" });
      expect(link.getAttribute("href")).toBe(address);
      await user.keyboard("{Escape}");
    }
  });

  it("shows what was not found and links to the list of its kind", async () => {
    lists();
    const { go, user, address } = await open("/workflows/nope");
    await screen.findByRole("heading", { name: "nope" });
    expect((await screen.findByRole("alert")).textContent).toBe("there is no workflow 'nope'");
    await user.click(main().getByRole("link", { name: "Workflows" }));
    await waitFor(() => expect(address()).toBe("/workflows"));
    await go("/executions/exec-nope");
    await screen.findByRole("heading", { name: "exec-nope" });
    expect((await screen.findByRole("alert")).textContent).not.toContain("pointsman");
    await user.click(main().getByRole("link", { name: "Executions" }));
    await waitFor(() => expect(address()).toBe("/executions"));
    await go("/worklfows");
    await screen.findByRole("heading", { name: "Page not found." });
    await user.click(screen.getByRole("link", { name: "To the workflows" }));
    await waitFor(() => expect(address()).toBe("/workflows"));
  });

  it("keeps the menu when a page crashes", async () => {
    // React logs the error.
    const told = vi.spyOn(console, "error").mockImplementation(() => undefined);
    server.get("/api/models/keys", { providers: [], at: 0, beginsAnew: 0, shared: false });
    // An answer that the page cannot render.
    server.get("/api/models", { models: 7 } as unknown as typeof noModels);
    const { user } = await open("/models");
    await screen.findByRole("heading", { name: "This page cannot be shown" });
    server.get("/api/models", noModels);
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await user.click(screen.getByRole("link", { name: /^Inbox/ }));
    await screen.findByRole("heading", { name: "Inbox" });
    expect(told).toHaveBeenCalled();
    told.mockRestore();
  });

  it("keeps the chosen language on the next visit", async () => {
    const { user } = await open("/workflows", { language: "de" });
    await screen.findByRole("heading", { name: "Abläufe" });
    await user.click(screen.getByRole("button", { name: /Sprache/ }));
    await screen.findByRole("heading", { name: "Workflows" });
    expect(localStorage.getItem("pointsman.language")).toBe("en");
    expect(document.documentElement.lang).toBe("en");
  });

  it("shows the login form on the current page after the key is revoked", async () => {
    let isIn = false;
    const out = refusal(401, "unauthorized", "a key is needed");
    server.get("/api/me", () => (isIn ? keyed("ada", "viewer") : out));
    server.get("/api/login", { asks: true, provider: null });
    server.get("/api/usage", () => (isIn ? { usage: [], rows: 0 } : out));
    server.get("/api/budgets", () => (isIn ? { budgets: [] } : out));
    server.get("/api/inbox", () => (isIn ? { gates: [], next: null } : out));
    server.post("/api/login", ({ body }) => {
      isIn = body.key === "pm_ada";
      return isIn ? keyed("ada", "viewer") : out;
    });
    const { user, address } = await open("/usage");
    await screen.findByRole("heading", { name: "Sign in" });
    await fill(user, await screen.findByLabelText(/^Key/), "pm_wrong");
    await user.click(screen.getByRole("button", { name: "Sign in" }));
    await screen.findByRole("alert");
    await fill(user, screen.getByLabelText(/^Key/), "pm_ada");
    await user.click(screen.getByRole("button", { name: "Sign in" }));
    await screen.findByRole("heading", { name: "Usage" });
    expect(address()).toBe("/usage");
    isIn = false;
    await user.click(screen.getByText("7 days"));
    await screen.findByRole("heading", { name: "Sign in" });
  });

  it("keeps a key that is being typed while the session is asked for again", async () => {
    const out = refusal(401, "unauthorized", "a key is needed");
    let answer = () => {};
    const second = new Promise<typeof out>((resolve) => {
      answer = () => resolve(out);
    });
    server.get("/api/me", () => (server.requestsTo("get", "/api/me").length > 1 ? second : out));
    server.get("/api/login", { asks: true, provider: null });
    const { user } = await open("/workflows");
    const field = await screen.findByLabelText<HTMLInputElement>(/^Key/);
    await fill(user, field, "pm_half");
    // As when the user returns from the window of a password manager.
    focusManager.setFocused(false);
    focusManager.setFocused(true);
    await waitFor(() => expect(server.requestsTo("get", "/api/me")).toHaveLength(2));
    for (const moment of [() => {}, answer]) {
      await act(async () => moment());
      await new Promise((resolve) => setTimeout(resolve));
      expect(screen.getByLabelText<HTMLInputElement>(/^Key/)).toBe(field);
      expect(field.value).toBe("pm_half");
    }
    focusManager.setFocused(undefined);
  });
});
