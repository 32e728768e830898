import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { Json } from "@/api/views";
import { AT } from "@/testing/answers";
import { dialog, fill, noDialog, open, rows, server } from "@/testing/page";
import type { Change, Value, Writer } from "./memory";

const HAND: Writer = { person: "local", entrance: "local" };

/** The memory of one owner: the history of each key, oldest first. */
let kept: Record<string, Change[]> = {};

function remember(key: string, value: Json, by: Writer = HAND, ttl: number | null = null): Value {
  const before = kept[key] ?? [];
  kept[key] = [...before, { number: before.length + 1, value, changedAt: AT, expiresAt: ttl && AT + ttl, by }];
  return latestOf(key);
}

function latestOf(key: string): Value {
  const last = kept[key]?.at(-1);
  return { namespace: "", key, value: last?.value, changedAt: AT, expiresAt: last?.expiresAt ?? null };
}

beforeEach(() => {
  kept = {};
  const owner = { id: "user/ada", scope: "user", owner: "ada", keys: 1, bytes: 10, changedAt: AT };
  server.get("/api/memory", () => ({
    owners: Object.keys(kept).length ? [owner, { ...owner, id: "user/bob", owner: "bob" }] : [],
    next: null,
  }));
  server.get("/api/memory/{scope}", ({ query }) => ({
    values: Object.keys(kept)
      .map(latestOf)
      .filter((one) => JSON.stringify(one).includes(query.get("q") ?? "")),
    next: null,
  }));
  server.get("/api/memory/{scope}/history", ({ query }) => ({
    changes: [...(kept[query.get("key") ?? ""] ?? [])].reverse(),
    next: null,
  }));
  server.post("/api/memory/{scope}/history", ({ query, body }) => {
    const key = query.get("key") ?? "";
    return remember(key, kept[key]?.[body.number - 1]?.value as Json);
  });
  server.put("/api/memory/{scope}/value", ({ query, body }) =>
    remember(query.get("key") ?? "", body.value, HAND, body.ttl ?? null),
  );
  server.delete("/api/memory/{scope}/value", ({ query }) => {
    delete kept[query.get("key") ?? ""];
    return undefined;
  });
  server.delete("/api/memory/{scope}", () => {
    kept = {};
    return { forgotten: 2 };
  });
});

describe("memory pages", () => {
  it("find, view, correct and delete a value", async () => {
    remember("likes", { places: ["the sea", "maps"] });
    remember("note", "hello");
    const { user } = await open("/memory");
    await fill(user, await screen.findByLabelText("Search owners"), "ad");
    await waitFor(() => expect(rows("Users")).toHaveLength(2));
    await user.click(within(screen.getByRole("table", { name: "Users" })).getByRole("link", { name: "ada" }));
    await screen.findByRole("table", { name: "Memories" });
    expect(rows("Memories")).toHaveLength(3);
    await fill(user, screen.getByLabelText("Search memories"), "maps");
    await waitFor(() => expect(rows("Memories")).toHaveLength(2));
    await user.click(screen.getByRole("button", { name: "likes" }));
    const shown = await dialog("likes");
    await user.click(await shown.findByRole("button", { name: "places: list (2)" }));
    expect(shown.queryByText("the sea")).toBeNull();
    await user.click(shown.getByRole("button", { name: "Edit" }));
    const json = shown.getByLabelText("Value (JSON)");
    await fill(user, json, '{"places": ');
    await shown.findByText("Not valid JSON.");
    expect(shown.getByRole("button", { name: "Save" })).toHaveProperty("disabled", true);
    await fill(user, json, '{"places": ["hills"]}');
    await user.selectOptions(shown.getByLabelText("Expires"), "in a day");
    await user.click(shown.getByRole("button", { name: "Save" }));
    await noDialog();
    const put = server.requestsTo("put", "/api/memory/{scope}/value")[0];
    expect(put?.body).toEqual({ value: { places: ["hills"] }, ttl: 86_400 });
    expect(put?.query.get("owner")).toBe("ada");
    await fill(user, screen.getByLabelText("Search memories"), "");
    await user.click(await screen.findByRole("button", { name: "note" }));
    await user.click((await dialog("note")).getByRole("button", { name: "Delete" }));
    await user.click((await dialog("Delete note?")).getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(rows("Memories")).toHaveLength(2));
    expect(Object.keys(kept)).toEqual(["likes"]);
  });

  it("add a value, and delete everything of an owner", async () => {
    remember("plan", 1);
    const { user, address } = await open("/memory/shared/team");
    await user.click(await screen.findByRole("button", { name: "Add memory" }));
    const form = await dialog();
    await fill(user, form.getByLabelText(/^Key/), "goal");
    await fill(user, form.getByLabelText(/^Value \(JSON\)/), '"ship"');
    await user.click(form.getByRole("button", { name: "Save" }));
    await screen.findByRole("button", { name: "goal" });
    expect(server.bodiesTo("put", "/api/memory/{scope}/value")).toEqual([{ value: "ship" }]);
    await user.click(screen.getByRole("button", { name: "Delete all" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete all" }));
    await waitFor(() => expect(address()).toBe("/memory"));
    await screen.findByText("No memories yet.");
    expect(server.requestsTo("delete", "/api/memory/{scope}")[0]?.query.get("owner")).toBe("team");
  });

  it("show the authors and earlier values, and restore one", async () => {
    remember("likes", { places: ["the sea"] }, { execution: "exec-1", workflow: "note", node: "keep" });
    remember("likes", { places: ["the sea", "maps"] });
    remember("likes", { places: ["hills"] });
    const { user } = await open("/memory/user/local");
    await user.click(await screen.findByRole("button", { name: "likes" }));
    const shown = await dialog("likes");
    const past = () => [...shown.getByRole("list", { name: "Earlier values" }).children] as HTMLElement[];
    await waitFor(() => expect(past()).toHaveLength(3));
    const nth = (at: number) => within(past()[at] as HTMLElement);
    const unfold = (at: number) => user.click((past()[at] as HTMLElement).querySelector("summary") as HTMLElement);
    expect(past()[0]?.textContent).toContain("now");
    await unfold(1);
    expect(past()[1]?.textContent).toContain("Written by local (on this machine)");
    nth(1).getByText("places[1]");
    expect(past()[1]?.querySelector("ins")?.textContent).toBe("maps");
    await unfold(2);
    const link = nth(2).getByRole("link", { name: "note" });
    expect(link.getAttribute("href")).toBe("/executions/exec-1");
    await user.click(nth(1).getByRole("button", { name: "Restore" }));
    const asked = await dialog("Restore an earlier value of likes?");
    await asked.findByText(/\{"places":\["the sea","maps"\]\}/);
    await user.click(asked.getByRole("button", { name: "Restore" }));
    await noDialog();
    const table = await screen.findByRole("table", { name: "Memories" });
    await waitFor(() => expect(table.textContent).toContain('["the sea","maps"]'));
    expect(server.bodiesTo("post", "/api/memory/{scope}/history")).toEqual([{ number: 2 }]);
  });

  it("do not offer to restore the present value, also in German", async () => {
    remember("plan", { until: "May" });
    remember("plan", { until: "June" });
    const { user } = await open("/memory/shared/team", { language: "de" });
    await user.click(await screen.findByRole("button", { name: "plan" }));
    const list = await screen.findByRole("list", { name: "Frühere Werte" });
    await waitFor(() => expect(list.children).toHaveLength(2));
    const [now, before] = [...list.children] as [HTMLElement, HTMLElement];
    await user.click(now.querySelector("summary") as HTMLElement);
    expect(now.textContent).toContain("Geschrieben von local (an diesem Rechner)");
    expect(within(now).queryByRole("button", { name: "Wiederherstellen" })).toBeNull();
    expect(now.querySelector("del")?.textContent).toBe("May");
    await user.click(before.querySelector("summary") as HTMLElement);
    within(before).getByRole("button", { name: "Wiederherstellen" });
  });

  it("show foreign names and values as text", async () => {
    const hostile = '<img src=x onerror="document.title=1">/..?owner=bob#x';
    remember(hostile, { [hostile]: hostile });
    const owner = { id: `user/${hostile}`, scope: "user", owner: hostile, keys: 1, bytes: 10, changedAt: AT };
    server.get("/api/memory", { owners: [owner], next: null });
    const { user } = await open("/memory");
    await user.click(await screen.findByRole("link", { name: hostile }));
    await user.click(await screen.findByRole("button", { name: hostile }));
    expect((await (await dialog()).findAllByText(hostile, { exact: false })).length).toBeGreaterThan(0);
    expect(server.requestsTo("get", "/api/memory/{scope}")[0]?.query.get("owner")).toBe(hostile);
    expect(document.querySelector("img[src=x]")).toBeNull();
  });
});
