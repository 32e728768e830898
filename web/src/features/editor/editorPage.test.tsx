import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, noModels, noTools, workflowEntry } from "@/testing/answers";
import { dialog, expectText, fill, noDialog, open, server } from "@/testing/page";
import { Reply, refusal, tagged } from "@/testing/server";

type Document = { id: string; tags?: string[]; description?: string; nodes: object[]; edges: object[] };

const FIRST = { id: "first", type: "agent", config: { prompt: "one" } };
const SECOND = { id: "second", type: "agent", config: { prompt: "two" } };
const EDGES = [{ source: "first", target: "second" }];

/** Revisions of each workflow, oldest first. */
let revisions: Record<string, Document[]> = {};

const detail = (id: string, revision: number) => ({
  ...workflowEntry(id, { revision, etag: `"${revision}"` }),
  document: revisions[id]?.[revision - 1],
  text: "",
  problems: [],
});

const save = (id: string, document: object) =>
  revisions[id]?.push({ ...(revisions[id]?.at(-1) as Document), ...document });

/** Parse `id` or `id@revision`. */
function read(name: string) {
  const [id = "", at] = name.split("@");
  return { id, revision: Number(at ?? revisions[id]?.length ?? 0) };
}

beforeEach(() => {
  localStorage.clear();
  revisions = { chain: [{ id: "chain", nodes: [FIRST, SECOND], edges: EDGES }] };
  server.get("/api/tools", noTools);
  server.get("/api/models", noModels);
  server.get("/api/agents", { agents: [], next: null });
  server.get("/api/workflows/schema", {
    type: "object",
    properties: { tags: { type: "array", items: { type: "string" } } },
    $defs: {},
  } as never);
  server.get("/api/workflows/{id}", ({ at, query }) => {
    const { id, revision } = read(at.id ?? "");
    if (!revisions[id]) return refusal(404, "unknown-workflow", `there is no workflow '${id}'`);
    const one = detail(id, revision);
    return (query.has("dialect") ? { document: one.document, losses: [] } : tagged(one, one.etag)) as never;
  });
  server.get("/api/workflows/{id}/versions", ({ at }) => {
    const all = revisions[at.id ?? ""] ?? [];
    const entries = all.map((_, n) => workflowEntry(at.id ?? "", { revision: n + 1, author: "ben", createdAt: AT }));
    return { workflows: entries.reverse(), next: null } as never;
  });
  server.post("/api/workflows/{id}/edit", ({ at, body, headers }) => {
    const id = at.id ?? "";
    const revision = revisions[id]?.length ?? 0;
    if (body.apply && headers.get("if-match") !== `"${revision}"`)
      return refusal(412, "revision-moved", "somebody saved meanwhile");
    const changes = body.operations.flatMap((one: { set?: object }) => Object.entries(one.set ?? {}));
    // Fields are addressed by JSON pointers.
    const document = Object.fromEntries(changes.map(([at, value]: [string, unknown]) => [at.slice(1), value]));
    if (body.apply) save(id, document);
    return { ...detail(id, revisions[id]?.length ?? 0), problems: [] } as never;
  });
  server.post("/api/workflows/{id}/clone", ({ at, body }) => {
    if (revisions[body.id]) return refusal(409, "workflow-exists", `there is a workflow '${body.id}' already`);
    revisions[body.id] = [{ ...(revisions[at.id ?? ""]?.[0] as Document), id: body.id }];
    return { id: body.id, revision: 1 } as never;
  });
  server.delete("/api/workflows/{id}", ({ at }) => {
    delete revisions[at.id ?? ""];
    return new Reply(204, undefined);
  });
});

const tags = () => screen.findByLabelText<HTMLInputElement>("Tags");
const saveButton = () => screen.getByRole("button", { name: "Save" });

describe("the editor", () => {
  it("clones a workflow, keeps unsaved changes, and deletes it after confirmation", async () => {
    const { user, address, go } = await open("/workflows/chain");
    await user.click(await screen.findByRole("button", { name: "Duplicate" }));
    const cloned = await dialog();
    await fill(user, cloned.getByLabelText(/Id of the copy/), "chain");
    await user.click(cloned.getByRole("button", { name: "Duplicate" }));
    await cloned.findByRole("alert");
    await fill(user, cloned.getByLabelText(/Id of the copy/), "second");
    await user.click(cloned.getByRole("button", { name: "Duplicate" }));
    await waitFor(() => expect(address()).toBe("/workflows/second"));
    await fill(user, await tags(), "tides");
    await expectText("1 unsaved change");
    await user.click(screen.getByRole("link", { name: "Inbox" }));
    await user.click((await dialog("Leave without saving?")).getByRole("button", { name: "Cancel" }));
    await noDialog();
    expect(address()).toBe("/workflows/second");
    await user.click(screen.getByRole("link", { name: "Inbox" }));
    await user.click((await dialog("Leave without saving?")).getByRole("button", { name: "Leave" }));
    await screen.findByRole("heading", { name: "Inbox" });
    await go("/workflows/second");
    await expectText("1 unsaved change");
    await user.click(screen.getByRole("button", { name: "Delete" }));
    await user.click((await dialog("Delete second?")).getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(address()).toBe("/workflows"));
    expect(Object.keys(revisions)).toEqual(["chain"]);
  });

  it("rebases changes on a newer revision and lists the conflicts", async () => {
    const { user } = await open("/workflows/chain");
    await fill(user, await tags(), "mine");
    await expectText("1 unsaved change");
    save("chain", { tags: ["theirs"], description: "Longer." });
    await user.click(saveButton());
    const moved = within(await screen.findByRole("region", { name: "Changed elsewhere" }));
    await expectText("saved revision 2");
    await user.click(moved.getByRole("button", { name: "Apply my changes on top" }));
    await waitFor(() =>
      expect(screen.getByRole("region", { name: "Changed elsewhere" }).textContent).toContain("tags"),
    );
    await expectText("1 unsaved change");
    await user.click(saveButton());
    await waitFor(() => expect(revisions.chain).toHaveLength(3));
    expect(revisions.chain?.[2]).toMatchObject({ tags: ["mine"], description: "Longer." });
  });

  it("offers stored changes of an older revision", async () => {
    const one = await open("/workflows/chain");
    await fill(one.user, await tags(), "stored");
    await expectText("1 unsaved change");
    save("chain", { description: "Longer." });
    document.body.innerHTML = "";
    const { user } = await open("/workflows/chain");
    const moved = within(await screen.findByRole("region", { name: "Changed elsewhere" }));
    await expectText("This browser has one unsaved change based on revision 1");
    await user.click(moved.getByRole("button", { name: "Apply my changes on top" }));
    await expectText("1 unsaved change");
    await user.click(saveButton());
    await waitFor(() => expect(revisions.chain).toHaveLength(3));
    expect(revisions.chain?.[2]).toMatchObject({ tags: ["stored"], description: "Longer." });
  });
});
