import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { NamedVersion } from "@/api/views";
import { AT, noModels, noTools, workflowEntry } from "@/testing/answers";
import { dialog, expectText, fill, noDialog, open, server } from "@/testing/page";
import { Reply, refusal, tagged } from "@/testing/server";

const NODES = [{ id: "first", type: "agent", config: { prompt: "one" } }];

/** Names of revisions 1, 2 and 3, and the revision that runs. */
let names: Record<number, NamedVersion> = {};
let published = 0;
let started: string[] = [];

const entry = (revision: number) =>
  workflowEntry("chain", {
    revision,
    author: "ben",
    createdAt: AT,
    published: names[published] ?? null,
    label: names[revision] ?? null,
  });

beforeEach(() => {
  localStorage.clear();
  names = {};
  published = 0;
  started = [];
  server.get("/api/tools", noTools);
  server.get("/api/models", noModels);
  server.get("/api/agents", { agents: [], next: null });
  server.get("/api/workflows/schema", { type: "object", properties: {}, $defs: {} } as never);
  server.get("/api/workflows/{id}", ({ at, query }) => {
    const revision = Number((at.id ?? "").split("@")[1] ?? 3);
    const document = { id: "chain", nodes: NODES, edges: [] };
    if (query.has("dialect")) return { document, losses: [] } as never;
    return tagged({ ...entry(revision), document, text: "", problems: [] }, `"${revision}"`) as never;
  });
  server.get("/api/workflows/{id}/versions", () => ({ workflows: [3, 2, 1].map(entry), next: null }) as never);
  server.put("/api/workflows/{id}/published", ({ body }) => {
    published = body.revision ?? 3;
    names[published] = { revision: published, name: body.name, note: body.note ?? "", namedAt: AT, namedBy: "ann" };
    return names[published] as never;
  });
  server.delete("/api/workflows/{id}/published", () => {
    published = 0;
    return new Reply(204, undefined);
  });
  server.post("/api/workflows/{id}/execute", ({ at }) => {
    started.push(at.id ?? "");
    return refusal(409, "workflow-disabled", "it is off");
  });
});

describe("versions", () => {
  it("publishes the revision on the canvas under a name, once", async () => {
    const { user } = await open("/workflows/chain");
    await user.click(await screen.findByRole("button", { name: "Publish" }));
    const asked = await dialog();
    await fill(user, asked.getByLabelText(/Name/), "Spring");
    await fill(user, asked.getByLabelText("What is new"), "A greeting");
    await user.click(asked.getByRole("button", { name: "Publish" }));
    await noDialog();
    expect([published, names[3]?.note]).toEqual([3, "A greeting"]);
    await expectText("published: Spring");
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Publish" }).disabled).toBe(true);
  });

  it("shows drafts beside the published version and starts the one that is chosen", async () => {
    published = 2;
    names = { 2: { revision: 2, name: "Spring", note: "", namedAt: AT, namedBy: "ann" } };
    const { user } = await open("/workflows/chain");
    await expectText("Draft. The published version “Spring” runs.");
    await user.click(screen.getAllByRole("button", { name: "Start" })[0] as HTMLElement);
    const choice = await screen.findByLabelText<HTMLSelectElement>("Version");
    expect(choice.value).toBe("draft");
    await user.selectOptions(choice, "Published: Spring");
    await user.click(await (await dialog()).findByRole("button", { name: "Start" }));
    await expect.poll(() => started).toEqual(["chain"]);
  });

  it("names revisions in their list, and unpublishes", async () => {
    published = 2;
    names = { 2: { revision: 2, name: "Spring", note: "A greeting", namedAt: AT, namedBy: "ann" } };
    const { user } = await open("/workflows/chain");
    await user.click(await screen.findByRole("tab", { name: "Revisions" }));
    await expectText("A greeting");
    expect(screen.getByRole<HTMLButtonElement>("button", { name: "Restore “Spring”" }).disabled).toBe(false);
    screen.getByRole("button", { name: "Compare “Spring” with current" });
    await user.click(screen.getByRole("button", { name: "Unpublish" }));
    await user.click((await dialog()).getByRole("button", { name: "Unpublish" }));
    await noDialog();
    expect(published).toBe(0);
  });
});
