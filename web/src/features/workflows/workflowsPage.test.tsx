import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, entry, execution, workflowEntry } from "@/testing/answers";
import { dialog, fill, main, noDialog, open, server } from "@/testing/page";
import { requirement } from "@/testing/requirement";
import { type RecordedRequest, refusal, tagged } from "@/testing/server";

type Kept = Omit<ReturnType<typeof workflowEntry>, "lastExecution"> & {
  lastExecution: ReturnType<typeof entry> | null;
};

const PAGE = 50;
const LETTER = "pointsman: 1\nid: letter\n";
let kept: Kept[] = [];

const workflow = (id: string, name: string, more: Partial<Kept> = {}): Kept => ({
  ...workflowEntry(id, { name }),
  ...more,
});

function found({ query }: RecordedRequest) {
  if (query.get("builtIn") === "true") return { workflows: [], next: null };
  const words = (query.get("search") ?? "").toLowerCase();
  const tags = query.getAll("tag");
  const fits = kept
    .filter((one) => `${one.id} ${one.name} ${one.description}`.toLowerCase().includes(words))
    .filter((one) => tags.every((tag) => one.tags.includes(tag)));
  const ordered = fits.sort((a, b) =>
    query.get("sort") === "saved" ? (b.createdAt ?? 0) - (a.createdAt ?? 0) : a.name.localeCompare(b.name),
  );
  const begin = Number(query.get("after") ?? 0);
  return { workflows: ordered.slice(begin, begin + PAGE), next: ordered.length > begin + PAGE ? String(PAGE) : null };
}

const items = () => [...(main().getAllByRole("list")[0] as HTMLElement).children] as HTMLElement[];

beforeEach(() => {
  kept = [];
  server.get("/api/workflows", found);
  server.get("/api/workflows/{id}", ({ at, query }) => {
    const one = kept.find((each) => each.id === at.id);
    if (!one) return refusal(404, "unknown-workflow", `there is no workflow '${at.id}'`);
    const document = { id: one.id, input: { type: "object" }, nodes: [{ id: "first", type: "end" }], edges: [] };
    if (query.has("dialect")) return { document, losses: [], graph: null };
    return { ...one, document, text: "", problems: [] };
  });
});

describe("list of workflows", () => {
  requirement("S1-145");
  it("is searched by text and filtered by tags, which the address stores", async () => {
    kept = [
      workflow("one", "Tides", { description: "When the water comes", tags: ["sea", "daily"] }),
      workflow("two", "Harbour", { tags: ["sea"], createdAt: AT + 1, lastExecution: entry("exec-1") }),
      workflow("three", "Letters", { createdAt: AT + 2 }),
    ];
    const { user, address } = await open("/workflows");
    await screen.findByRole("link", { name: "Tides" });
    expect(items()).toHaveLength(3);
    expect(items()[0]?.textContent).toContain("Harbour");
    within(items()[0] as HTMLElement).getByRole("link", { name: /^completed/ });
    expect(items()[2]?.textContent).toContain("When the water comes");
    const search = screen.getByRole("searchbox", { name: "Search" });
    await fill(user, search, "WATER");
    await waitFor(() => expect(address()).toBe("/workflows?q=WATER"));
    await waitFor(() => expect(items()).toHaveLength(1));
    await fill(user, search, "nothing like it");
    await screen.findByText(/No workflows match “nothing like it”\./);
    await fill(user, search, "");
    await user.click(await screen.findByRole("button", { name: "sea" }));
    await waitFor(() => expect(items()).toHaveLength(2));
    await user.click(await screen.findByRole("button", { name: "daily" }));
    await waitFor(() => expect(items()).toHaveLength(1));
    expect(address()).toContain("tag=");
    const there = address();
    await user.click(screen.getByRole("button", { name: "daily" }));
    await user.click(screen.getByRole("button", { name: "sea" }));
    await user.selectOptions(screen.getByLabelText("Sort by"), "saved");
    await waitFor(() => expect(items()[0]?.textContent).toContain("Letters"));
    document.body.innerHTML = "";
    await open(there);
    expect((await screen.findByRole("button", { name: "daily" })).getAttribute("aria-pressed")).toBe("true");
    expect(items()).toHaveLength(1);
  });

  it("loads long lists page by page", async () => {
    kept = Array.from({ length: 52 }, (_, at) => workflow(`w${at}`, `Number ${at}`));
    const { user } = await open("/workflows");
    await user.click(await screen.findByRole("button", { name: "Show more" }));
    await waitFor(() => expect(items()).toHaveLength(52));
  });

  it("deletes the selected workflows, except those that changed meanwhile", async () => {
    kept = [workflow("one", "Tides"), workflow("two", "Harbour"), workflow("three", "Letters")];
    server.delete("/api/workflows/{id}", ({ at, headers }) => {
      const one = kept.find((each) => each.id === at.id);
      if (headers.get("if-match") !== one?.etag) return refusal(409, "revision-moved", `'${at.id}' is at revision 2`);
      kept = kept.filter((each) => each.id !== at.id);
      return undefined;
    });
    const { user } = await open("/workflows");
    await user.click(await screen.findByLabelText("Select Tides"));
    await user.click(screen.getByLabelText("Select Harbour"));
    await screen.findByText("2 selected");
    await user.click(screen.getByRole("button", { name: /^Delete/ }));
    let asked = await dialog();
    await asked.findByText(/Harbour, Tides\. Their executions are kept\./);
    await user.click(asked.getByRole("button", { name: "Cancel" }));
    expect(kept).toHaveLength(3);
    await user.click(screen.getByRole("button", { name: /^Delete/ }));
    asked = await dialog();
    kept = kept.map((one) => (one.id === "two" ? workflow("two", "Harbour of another", { etag: '"2"' }) : one));
    await user.click(asked.getByRole("button", { name: "Delete" }));
    expect((await screen.findByRole("alert")).textContent).toContain("'two' is at revision 2");
    await waitFor(() => expect(screen.queryByRole("link", { name: "Tides" })).toBeNull());
    await screen.findByRole("link", { name: "Harbour of another" });
    screen.getByRole("link", { name: "Letters" });
    expect(server.requestsTo("delete", "/api/workflows/{id}").map((one) => one.headers.get("if-match"))).toEqual([
      '"1"',
      '"1"',
    ]);
  });

  it("switches a workflow off and shares it", async () => {
    kept = [workflow("one", "Tides")];
    server.patch("/api/workflows/{id}", ({ body }) => {
      kept = kept.map((one) => ({ ...one, enabled: body.enabled }));
      return { id: "one", revision: 2, digest: "d2", losses: [] };
    });
    server.get("/api/workflows/{id}/sharing", tagged({ owner: "local", audience: "everyone", groups: [] }, '"s1"'));
    server.put("/api/workflows/{id}/sharing", ({ body }) => ({ owner: "local", ...body }));
    const { user } = await open("/workflows");
    const lever = await screen.findByRole("switch", { name: "Tides is enabled" });
    expect(lever.getAttribute("aria-checked")).toBe("true");
    await user.click(lever);
    await waitFor(() => expect(screen.getByRole("switch").getAttribute("aria-checked")).toBe("false"));
    expect(screen.getByRole("button", { name: "Start Tides" })).toHaveProperty("disabled", true);
    await user.click(screen.getByRole("button", { name: "Share Tides" }));
    const form = await dialog();
    await user.click(await form.findByRole("radio", { name: /Groups/ }));
    await fill(user, form.getByRole("textbox", { name: /Groups/ }), "desk, night , desk");
    await user.click(form.getByRole("button", { name: "Save" }));
    await noDialog();
    expect(server.bodiesTo("patch", "/api/workflows/{id}")).toEqual([{ enabled: false }]);
    const [shared] = server.requestsTo("put", "/api/workflows/{id}/sharing");
    expect(shared?.body).toEqual({ audience: "groups", groups: ["desk", "night"] });
    expect(shared?.headers.get("if-match")).toBe('"s1"');
  });

  it("lists the parts of the text that switching lost", async () => {
    kept = [workflow("said", "said")];
    server.patch("/api/workflows/{id}", () => {
      kept = kept.map((one) => ({ ...one, enabled: false }));
      return { id: "said", revision: 2, digest: "d2", losses: ["comments: // why"] };
    });
    const { user } = await open("/workflows");
    await user.click(await screen.findByRole("switch", { name: /said/ }));
    const told = await screen.findByText(/rewritten/);
    await screen.findAllByText(/comments/);
    await user.click(screen.getByRole("button", { name: "Dismiss" }));
    await waitFor(() => expect(told.isConnected).toBe(false));
  });

  it("exports a workflow in another dialect", async () => {
    kept = [workflow("chain", "chain")];
    const { user } = await open("/workflows");
    await user.click(await screen.findByRole("button", { name: "Export chain" }));
    await user.click(await screen.findByRole("radio", { name: /Native/ }));
    await screen.findByText("Complete: nothing is lost.");
    expect(screen.getByRole("button", { name: "Download" })).toHaveProperty("disabled", false);
    await user.keyboard("{Escape}");
    await noDialog();
    expect(document.activeElement).toBe(screen.getByRole("button", { name: "Export chain" }));
  });
});

describe("imported documents", () => {
  const checked: Record<string, { ok: boolean; id: string | null; revision: number | null; message?: string }> = {
    known: { ok: true, id: "one", revision: 1 },
    fresh: { ok: true, id: "fresh", revision: null },
    wrong: { ok: false, id: "wrong", revision: null, message: "edge leads to 'secnd', which is no node" },
    letter: { ok: true, id: "letter", revision: null },
  };
  const saved: RecordedRequest[] = [];

  beforeEach(() => {
    saved.length = 0;
    server.post("/api/workflows/check", ({ body }) => {
      const told = Object.entries(checked).find(([name]) => body.document.includes(name))?.[1];
      if (!told) return refusal(422, "unreadable-document", "it cannot be read as a workflow");
      const { message, ...more } = told;
      const problem = { code: "unknown-node", severity: "error" as const, pointer: "/edges/0/target" };
      const place = { line: 1, column: 1, hint: "", fix: null };
      return { ...more, dialect: "native", problems: message ? [{ ...problem, ...place, message }] : [] };
    });
    server.post("/api/workflows", (asked) => {
      saved.push(asked);
      const told = Object.entries(checked).find(([name]) => String(asked.body).includes(name))?.[1];
      const revision = (told?.revision ?? 0) + 1;
      kept = [...kept.filter((one) => one.id !== told?.id), workflow(told?.id ?? "", `Now ${told?.id}`, { revision })];
      return { id: told?.id ?? "", revision, digest: "d" };
    });
  });

  it("are checked, listed and saved after files are dropped", async () => {
    kept = [workflow("one", "Tides")];
    const { user } = await open("/workflows");
    await screen.findByRole("button", { name: "Import" });
    const named = ["known.yaml", "fresh.yaml", "wrong.yaml", "notes.txt"];
    const files = named.map((name) => new File([name === "notes.txt" ? "- not\n" : (name.split(".")[0] ?? "")], name));
    const dataTransfer = {
      files,
      items: files.map((file) => ({ kind: "file", getAsFile: () => file })),
      types: ["Files"],
    };
    const heading = screen.getByRole("heading", { level: 1 });
    fireEvent.dragOver(heading, { dataTransfer });
    await screen.findByText("Drop files to import them");
    fireEvent.drop(heading, { dataTransfer });
    const form = await dialog();
    const row = async (name: string) => (await form.findByText(name)).closest("li") as HTMLElement;
    await waitFor(async () =>
      expect((await row("known.yaml")).textContent).toContain("one exists: imported as revision 2"),
    );
    expect((await row("fresh.yaml")).textContent).toContain("new: fresh");
    expect((await row("wrong.yaml")).textContent).toContain("secnd");
    expect((await row("notes.txt")).textContent).toContain("cannot be read as a workflow");
    await user.click(form.getByRole("button", { name: "Save 2" }));
    await waitFor(async () => expect((await row("known.yaml")).textContent).toContain("Saved: one, revision 2"));
    await user.click(form.getByLabelText("Import documents with errors as drafts"));
    await user.click(form.getByRole("button", { name: "Save one" }));
    await waitFor(async () => expect((await row("wrong.yaml")).textContent).toContain("Saved: wrong, revision 1"));
    expect(saved.map((one) => [one.body, one.query.get("draft")])).toEqual([
      ["known", null],
      ["fresh", null],
      ["wrong", "true"],
    ]);
    await user.click(form.getAllByRole("button", { name: "Close" }).at(-1) as HTMLElement);
    await screen.findByRole("link", { name: "Now one" });
  });

  it("are not saved while the pasted text has errors", async () => {
    const { user } = await open("/workflows");
    await user.click(await screen.findByRole("button", { name: "Import" }));
    const form = await dialog();
    const text = form.getByLabelText("Document");
    await fill(user, text, "id: wrong");
    await form.findByText(/secnd/);
    expect(form.getByRole("button", { name: "Save" })).toHaveProperty("disabled", true);
    await fill(user, text, "{");
    expect(form.getByRole("button", { name: "Save" })).toHaveProperty("disabled", true);
    await fill(user, text, LETTER);
    await form.findByText(/No problems\./);
    expect(form.getByRole("button", { name: "Save" })).toHaveProperty("disabled", false);
    expect(saved).toEqual([]);
  });
});

describe("new workflow", () => {
  it("starts with a name and never overwrites another workflow", async () => {
    server.post("/api/workflows", ({ body }) =>
      body.id === "chain"
        ? refusal(412, "revision-moved", "workflow 'chain' is there already")
        : { id: body.id, revision: 1, digest: "d" },
    );
    const { user } = await open("/workflows");
    await user.click(await screen.findByRole("button", { name: "New" }));
    const form = await dialog();
    expect(document.activeElement).toBe(form.getByLabelText("Name"));
    await user.keyboard("Chain");
    expect(form.getByLabelText("Id")).toHaveProperty("value", "chain");
    await user.keyboard("{Enter}");
    expect((await form.findByRole("alert")).textContent).toContain("already");
    await fill(user, form.getByLabelText("Id"), "other-chain");
    await user.click(form.getByRole("button", { name: "Create" }));
    await waitFor(() => expect(server.bodiesTo("post", "/api/workflows")).toHaveLength(2));
    const [, made] = server.requestsTo("post", "/api/workflows");
    expect(made?.body).toMatchObject({ id: "other-chain", name: "Chain", nodes: [{ id: "start", type: "start" }] });
    expect(made?.headers.get("if-none-match")).toBe("*");
  });
});

describe("start form", () => {
  const INPUT = {
    type: "object",
    required: ["goal"],
    properties: {
      goal: { type: "string" },
      count: { type: "integer", minimum: 2 },
      colours: { type: "array", uniqueItems: true, items: { type: "string", enum: ["red", "green", "blue"] } },
      names: { type: "array", items: { type: "string" } },
      anything: { title: "Anything" },
      place: { type: "object", properties: { town: { type: "string" } } },
      way: {
        title: "Way",
        oneOf: [
          { type: "string", title: "by name" },
          { type: "integer", title: "by number" },
        ],
      },
      more: { type: "object", additionalProperties: { type: "string" } },
    },
  };

  beforeEach(() => {
    kept = [workflow("every", "every")];
    server.get("/api/workflows/{id}", ({ query }) => {
      const document = { id: "every", input: INPUT, nodes: [{ id: "done", type: "end" }], edges: [] };
      if (query.has("dialect")) return { document, losses: [], graph: null };
      return { ...workflow("every", "every"), document, text: "", problems: [] };
    });
    server.post("/api/workflows/{id}/execute", () => ({ ...execution("exec-1", { status: "completed" }) }));
    // The page of the new execution opens, and is tested elsewhere.
    const gone = refusal(404, "execution-missing", "gone") as never;
    server.get("/api/workflows/executions/{eid}", gone);
    server.get("/api/workflows/executions/{eid}/events", gone);
    server.get("/api/workflows/executions/{eid}/workflow", gone);
  });

  it("has a field for each property of the schema", async () => {
    const { user } = await open("/workflows");
    await user.click(await screen.findByRole("button", { name: "Start every" }));
    const form = await dialog();
    const goal = await form.findByRole("textbox", { name: /goal/ });
    await fill(user, form.getByRole("spinbutton", { name: /count/ }), "1");
    const names = within(form.getByRole("group", { name: /names/ }));
    await user.click(names.getByRole("button", { name: "Add" }));
    await user.click(form.getByRole("button", { name: "Start" }));
    await form.findByText("must be at least 2");
    expect(form.getAllByText("is required")).toHaveLength(2);
    await fill(user, goal, "tides");
    await fill(user, form.getByRole("spinbutton", { name: /count/ }), "3");
    await user.click(form.getByRole("checkbox", { name: "red" }));
    await user.click(form.getByRole("checkbox", { name: "blue" }));
    await fill(user, names.getByRole("textbox", { name: /Entry 1/ }), "Ada");
    await user.click(names.getByRole("button", { name: "Add" }));
    await fill(user, names.getByRole("textbox", { name: /Entry 2/ }), "Ben");
    await user.click(names.getAllByRole("button", { name: "Move up" })[1] as HTMLElement);
    expect(names.getAllByRole("textbox")[0]).toHaveProperty("value", "Ben");
    await fill(user, form.getByRole("textbox", { name: /Anything/ }), "[1, 2]");
    await fill(user, form.getByRole("textbox", { name: /town/ }), "Hamburg");
    await user.selectOptions(form.getByRole("combobox", { name: /Option/ }), "by number");
    await fill(user, form.getByRole("spinbutton", { name: /by number/ }), "7");
    await user.click(within(form.getByRole("group", { name: /more/ })).getByRole("button", { name: "Add" }));
    const key = form.getByRole("textbox", { name: "Name" });
    expect(key).toHaveProperty("value", "name");
    await fill(user, key, "note");
    await user.tab();
    await fill(user, await form.findByRole("textbox", { name: "note" }), "quick");
    await user.click(form.getByRole("button", { name: "Start" }));
    await waitFor(() => expect(server.bodiesTo("post", "/api/workflows/{id}/execute")).toHaveLength(1));
    expect(server.bodiesTo("post", "/api/workflows/{id}/execute")[0].input).toEqual({
      goal: "tides",
      count: 3,
      colours: ["red", "blue"],
      names: ["Ben", "Ada"],
      anything: [1, 2],
      place: { town: "Hamburg" },
      way: 7,
      more: { note: "quick" },
    });
  });
});
