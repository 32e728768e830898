import { screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { CatalogueEntry } from "@/api/views";
import { workflowEntry } from "@/testing/answers";
import { dialog, expectText, fill, noDialog, open, server } from "@/testing/page";
import { Reply, refusal, tagged } from "@/testing/server";

let kept: ReturnType<typeof workflowEntry>[] = [];
let paths: string[] = [];

const view = (path: string) => ({
  path,
  owner: "local",
  audience: "everyone" as const,
  groups: [],
  etag: '"1"',
  workflows: kept.filter((one) => one.folder === path).length,
});
const named = (id: string, more: Partial<CatalogueEntry> = {}) => workflowEntry(id, more);

beforeEach(() => {
  kept = [named("letter", { folder: "sales/mail" }), named("other")];
  paths = ["sales", "sales/mail"];
  server.get("/api/workflows", ({ query }) => {
    const folder = query.get("folder");
    const isOurs = query.get("builtIn") !== "true";
    const found = kept.filter((one) => !folder || one.folder === folder || one.folder.startsWith(`${folder}/`));
    return { workflows: isOurs ? found : [], next: null } as never;
  });
  server.get("/api/folders", () => ({ folders: paths.map(view) }));
  server.post("/api/folders", ({ body }) => {
    if (paths.includes(body.path)) return refusal(409, "folder-exists", "the folder exists");
    paths = [...paths, body.path].sort();
    return view(body.path);
  });
  server.patch("/api/folders", ({ query, body }) => {
    paths = paths.map((one) => (one === query.get("path") ? body.path : one));
    return new Reply(204, undefined);
  });
  server.put("/api/workflows/{id}/folder", ({ at, body }) => {
    kept = kept.map((one) => (one.id === at.id ? { ...one, folder: body.folder } : one));
    return { id: at.id ?? "", folder: body.folder };
  });
  server.get("/api/folders/sharing", () => tagged({ owner: "local", audience: "everyone", groups: [] }, '"1"'));
});

describe("folders of workflows", () => {
  it("filter the list by a folder, which the address stores, and lead back out", async () => {
    const { user, address } = await open("/workflows");
    await user.click(await screen.findByRole("link", { name: /^sales\s*1/ }));
    expect(address()).toBe("/workflows?folder=sales");
    await user.click(await screen.findByRole("link", { name: /^mail\s*1/ }));
    await waitFor(() => expect(screen.queryByRole("link", { name: "other" })).toBeNull());
    await screen.findByRole("link", { name: "letter" });
    await user.click(screen.getByRole("link", { name: "All workflows" }));
    await screen.findByRole("link", { name: "other" });
    expect(address()).toBe("/workflows");
  });

  it("are created, renamed, and say why a name is taken", async () => {
    const { user, address } = await open("/workflows");
    await user.click(await screen.findByRole("button", { name: "New folder" }));
    const asked = await dialog("New folder");
    await fill(user, asked.getByLabelText(/Path/), "sales");
    await user.click(asked.getByRole("button", { name: "Create" }));
    await asked.findByRole("alert");
    await fill(user, asked.getByLabelText(/Path/), "desk");
    await user.click(asked.getByRole("button", { name: "Create" }));
    await noDialog();
    expect(address()).toBe("/workflows?folder=desk");
    await expectText("This folder is empty.");
    await user.click(screen.getByRole("button", { name: "Rename folder desk" }));
    await fill(user, (await dialog()).getByLabelText(/Path/), "help");
    await user.click((await dialog()).getByRole("button", { name: "Rename" }));
    await noDialog();
    expect([address(), paths]).toEqual(["/workflows?folder=help", ["help", "sales", "sales/mail"]]);
  });

  it("receive the selected workflows", async () => {
    const { user } = await open("/workflows");
    await user.click(await screen.findByRole("checkbox", { name: "Select other" }));
    await user.click(screen.getByRole("button", { name: "Move" }));
    const asked = await dialog("Move workflow");
    await user.selectOptions(asked.getByLabelText("Folder"), "sales/mail");
    await user.click(asked.getByRole("button", { name: "Move" }));
    await noDialog();
    expect(kept.map((one) => one.folder)).toEqual(["sales/mail", "sales/mail"]);
  });

  it("are shared like workflows", async () => {
    const { user } = await open("/workflows?folder=sales");
    await user.click(await screen.findByRole("button", { name: "Share sales" }));
    const sharing = await dialog("Share sales");
    expect((await sharing.findByRole<HTMLInputElement>("radio", { name: /^Everyone/ })).checked).toBe(true);
  });
});
