import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { Schemas } from "@/api/views";
import { AT, keyed, local, setting } from "@/testing/answers";
import { dialog, fill, main, noDialog, open, rows, server } from "@/testing/page";
import { refusal } from "@/testing/server";
import type { Key, Person, Secret } from "./access";

describe("keys page", () => {
  let keys: Key[] = [];

  beforeEach(() => {
    keys = [];
    server.get("/api/settings/keys", () => ({ keys, next: null }));
    server.post("/api/settings/keys", ({ body }) => {
      keys.push({ ...body, groups: body.groups ?? [], createdAt: AT, expiresAt: null, usedAt: null });
      server.get("/api/me", keyed("root", "admin"));
      return { name: body.name, role: body.role, key: `pm_of_${body.name}` };
    });
    server.post("/api/login", keyed("root", "admin"));
    server.delete("/api/settings/keys/{name}", ({ at }) => {
      if (keys.length === 1) return refusal(409, "last-admin", "'root' is the only admin key");
      keys = keys.filter((one) => one.name !== at.name);
      return undefined;
    });
  });

  it("shows a new key once, and revokes a key unless it is the last admin key", async () => {
    server.get("/api/me", () => (keys.length ? keyed("root", "admin") : local));
    const { user } = await open("/keys");
    await screen.findByText("No keys yet.");
    await user.click(screen.getByRole("button", { name: "Create key" }));
    let form = await dialog();
    await fill(user, form.getByLabelText(/^Name/), "root");
    expect(form.getByLabelText("Role")).toHaveProperty("value", "admin");
    await user.click(form.getByRole("button", { name: "Create key" }));
    await form.findByText("pm_of_root");
    await user.click(form.getByRole("button", { name: "Done" }));
    await screen.findByRole("row", { name: /root/ });
    await screen.findByRole("button", { name: "Sign out" });
    expect(document.body.innerHTML).not.toContain("pm_of_root");
    await user.click(screen.getByRole("button", { name: "Create key" }));
    form = await dialog();
    await fill(user, form.getByLabelText(/^Name/), "ada");
    await user.selectOptions(form.getByLabelText("Role"), "editor");
    await fill(user, form.getByLabelText("Groups"), "desk, night, desk");
    await fill(user, form.getByLabelText("Valid for (days)"), "30");
    await user.click(form.getByRole("button", { name: "Create key" }));
    await user.click(await form.findByRole("button", { name: "Done" }));
    expect((await screen.findByRole("row", { name: /ada/ })).textContent).toContain("desk, night");
    expect(server.bodiesTo("post", "/api/settings/keys")).toEqual([
      { name: "root", role: "admin", groups: [], days: null },
      { name: "ada", role: "editor", groups: ["desk", "night"], days: 30 },
    ]);
    await user.click(screen.getByRole("button", { name: "Revoke ada" }));
    await user.click((await dialog()).getByRole("button", { name: "Revoke" }));
    await waitFor(() => expect(screen.queryByRole("row", { name: /ada/ })).toBeNull());
    await user.click(screen.getByRole("button", { name: "Revoke root" }));
    await user.click((await dialog()).getByRole("button", { name: "Revoke" }));
    expect((await screen.findByRole("alert")).textContent).toContain("the only admin key");
  });
});

describe("people page", () => {
  const person = (name: string, more: Partial<Person> = {}): Person => ({
    name,
    role: "operator",
    groups: [],
    ways: ["key"],
    logins: 0,
    seenAt: null,
    ...more,
  });
  const right: Schemas["RightView"] = {
    method: "POST",
    path: "/api/workflows/{id}/rollback",
    says: "Take it back",
    tag: "workflows",
    role: "editor",
  };

  it("finds people, ends all their logins, and shows the rights of each role", async () => {
    const all = [
      ...Array.from({ length: 50 }, (_, at) => person(`bob${at}`)),
      person("root", { role: "admin" }),
      person("ada", { role: "viewer", groups: ["desk"], logins: 1 }),
    ];
    const login = { id: "login-1", name: "ada", beganAt: AT, expiresAt: AT + 60, agent: "Firefox/1 Linux" };
    let logins = [login];
    server.get("/api/people", ({ query }) => {
      const words = query.get("search") ?? "";
      const fits = all.filter((one) => `${one.name} ${one.groups}`.includes(words));
      const begin = Number(query.get("after") ?? 0);
      const people = fits.slice(begin, begin + 50).map((one) => (logins.length ? one : { ...one, logins: 0 }));
      return { people, next: fits.length > begin + 50 ? "50" : null };
    });
    server.get("/api/logins", () => ({ logins, next: null }));
    server.delete("/api/logins", () => {
      logins = [];
      return { ended: 1 };
    });
    server.get("/api/rights", { rights: [right] });
    const { user } = await open("/people");
    const people = within(await screen.findByRole("table", { name: "Users" }));
    people.getByRole("row", { name: /bob0/ });
    expect(people.queryByRole("row", { name: /root/ })).toBeNull();
    await user.click((await screen.findAllByRole("button", { name: "Show more" }))[0] as HTMLElement);
    await people.findByRole("row", { name: /root/ });
    await fill(user, screen.getByLabelText("Search users"), "desk");
    await waitFor(() => expect(rows("Users")).toHaveLength(2));
    await fill(user, screen.getByLabelText("Search users"), "");
    await people.findByRole("row", { name: /root/ });
    await user.click(screen.getByRole("button", { name: "Log out everywhere: ada" }));
    await user.click((await dialog()).getByRole("button", { name: "Log out everywhere" }));
    await noDialog();
    expect(server.requestsTo("delete", "/api/logins")[0]?.query.get("name")).toBe("ada");
    await waitFor(() => expect(screen.queryByRole("button", { name: "Log out everywhere: ada" })).toBeNull());
    await fill(user, screen.getByLabelText("Search operations"), "rollback");
    const row = screen.getByRole("row", { name: /POST \/api\/workflows\/\{id\}\/rollback/ });
    expect(within(row).getAllByRole("img", { name: "yes" })).toHaveLength(2);
  });
});

describe("secrets page", () => {
  it("stores, replaces and deletes a secret and never shows it", async () => {
    let kept: Secret[] = [];
    server.get("/api/secrets", () => ({ secrets: kept, elsewhere: [], next: null }));
    server.get("/api/secrets/{name}/uses", { workflows: ["chain"], agents: [], settings: [] });
    server.put("/api/secrets/{name}", ({ at, body }) => {
      const { value: _, ...rule } = body;
      const etag = `"${kept.length + 1}"`;
      kept = [{ name: at.name ?? "", changedAt: AT, changedBy: "local", stored: true, etag, ...rule }];
      return undefined;
    });
    server.delete("/api/secrets/{name}", () => {
      kept = [];
      return undefined;
    });
    const { user } = await open("/secrets");
    await user.click(await screen.findByRole("button", { name: "Add secret" }));
    let form = await dialog();
    await fill(user, form.getByLabelText(/^Name/), "2 bad");
    await form.findByText(/first character must not be a digit/);
    await fill(user, form.getByLabelText(/^Name/), "WEATHER");
    await fill(user, form.getByLabelText(/^Value/), "short");
    expect(form.getByRole("button", { name: "Save" })).toHaveProperty("disabled", true);
    await fill(user, form.getByLabelText(/^Value/), "canary-one-1");
    await user.click(form.getByRole("button", { name: "Save" }));
    const row = within(await screen.findByRole("row", { name: /secret\.WEATHER/ }));
    await row.findByRole("link", { name: "chain" });
    await user.click(screen.getByRole("button", { name: "Replace WEATHER" }));
    form = await dialog();
    await fill(user, form.getByLabelText(/Value/), "canary-two-2");
    await user.click(form.getByRole("button", { name: "Save" }));
    await noDialog();
    expect(server.bodiesTo("put", "/api/secrets/{name}").map((one) => one.value)).toEqual([
      "canary-one-1",
      "canary-two-2",
    ]);
    expect(server.requestsTo("put", "/api/secrets/{name}")[1]?.headers.get("if-match")).toBe('"1"');
    expect(document.body.innerHTML).not.toContain("canary");
    await user.click(screen.getByRole("button", { name: "Delete WEATHER" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete" }));
    await screen.findByText("No secrets yet.");
  });
});

describe("settings page", () => {
  beforeEach(() => {
    server.get("/ready", {
      status: "ready",
      version: "1",
      stopping: false,
      store: true,
      writable: true,
      room: true,
      leader: "here",
      keeper: "here",
      model: "scripted",
    });
  });

  it("finds a setting by text", async () => {
    server.get("/api/workers", { version: "1", engine: "", shared: false, workers: [], queues: [], owned: [] });
    server.get("/api/settings", {
      version: "1",
      store: "sqlite:///store.db",
      settings: [setting("delays", false)],
    });
    const { user } = await open("/settings");
    await main().findByText(/sqlite:/);
    await fill(user, screen.getByLabelText("Search settings"), "delays");
    expect(screen.getByRole("row", { name: /delays/ }).textContent).toContain("false");
  });

  it("explains to other roles why they cannot see it, and hides the menu entry", async () => {
    server.get("/api/me", keyed("ada", "editor"));
    server.get("/api/settings", refusal(403, "forbidden", "an editor may not read the settings"));
    const { user } = await open("/settings");
    expect((await screen.findByRole("alert")).textContent).toContain("may not read the settings");
    await user.click(screen.getByRole("button", { name: /^More/ }));
    await screen.findByRole("menuitem", { name: "Usage" });
    expect(screen.queryByRole("menuitem", { name: "Keys" })).toBeNull();
  });
});
