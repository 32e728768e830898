import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { ExecutionEntry } from "@/api/views";
import { AT, entry, execution, workflowEntry } from "@/testing/answers";
import { dialog, fill, main, open, server } from "@/testing/page";
import { type RecordedRequest, refusal } from "@/testing/server";

const SHOWN = 20;
let kept: ReturnType<typeof entry>[] = [];
let workflows: ReturnType<typeof workflowEntry>[] = [];

function found({ query }: RecordedRequest) {
  const status = query.getAll("status");
  const until = Number(query.get("until") ?? Number.POSITIVE_INFINITY);
  const fits = kept.filter(
    (one) =>
      one.workflowId === (query.get("workflow") ?? one.workflowId) &&
      (status.length === 0 || status.includes(one.status)) &&
      one.startedAt < until &&
      // The real server searches the text of the input; this one searches the id.
      one.executionId.includes(query.get("q") ?? ""),
  );
  return { executions: query.get("order") === "asc" ? fits : [...fits].reverse(), next: null };
}

const items = () =>
  main()
    .queryAllByRole("listitem")
    .filter((one) => one.querySelector("[href^='/executions/']"));
const shows = (count: number) => waitFor(() => expect(items()).toHaveLength(count));

beforeEach(() => {
  kept = [];
  workflows = [workflowEntry("chain"), workflowEntry("letter")];
  server.get("/api/workflows/executions", found);
  server.get("/api/workflows", ({ query }) => {
    const ids = query.getAll("id");
    const words = (query.get("search") ?? "").toLowerCase();
    const fits = workflows.filter((one) => ids.length === 0 || ids.includes(one.id));
    const named = fits.filter((one) => `${one.id} ${one.name}`.toLowerCase().includes(words));
    return { workflows: named.slice(0, SHOWN), next: named.length > SHOWN ? "more" : null };
  });
});

describe("list of executions", () => {
  it("shows how long an ended execution took, and how long another one has existed", async () => {
    kept = [
      entry("exec-waits", { status: "waiting", startedAt: Date.now() / 1000 - 7200, updatedAt: AT }),
      entry("exec-done", { startedAt: AT, updatedAt: AT + 45 }),
    ];
    await open("/executions");
    await shows(2);
    const row = (name: string) => items().find((one) => one.textContent.includes(name));
    expect(row("exec-done")?.textContent).toContain("Duration: 45 s");
    expect(row("exec-waits")?.textContent).toContain("Duration: 2 h");
  });

  it("applies the filters in the address", async () => {
    kept = [
      entry("exec-done", { workflowId: "chain" }),
      entry("exec-waits", { status: "waiting", startedAt: AT + 1 }),
      entry("exec-harbours", { status: "cancelled", startedAt: AT + 2 }),
    ];
    const { user, address } = await open("/executions");
    await shows(3);
    expect(items()[0]?.textContent).toContain("exec-harbours");
    await user.selectOptions(screen.getByLabelText("Sort by"), "asc");
    await waitFor(() => expect(items()[0]?.textContent).toContain("exec-done"));
    await user.click(screen.getByRole("button", { name: "waiting" }));
    await user.click(screen.getByRole("button", { name: "cancelled" }));
    await shows(2);
    const there = address();
    await user.click(screen.getByRole("button", { name: "Clear" }));
    await shows(3);
    const field = screen.getByRole("combobox", { name: "Workflow" });
    await fill(user, field, "cha");
    await user.click(await screen.findByRole("option", { name: /chain/ }));
    await shows(1);
    fireEvent.change(screen.getByLabelText("To"), { target: { value: "2001-01-01" } });
    await screen.findByText("No matching executions.");
    await user.click(screen.getByRole("button", { name: "Clear" }));
    await fill(user, screen.getByRole("searchbox"), "harbours");
    await waitFor(() => expect(address()).toContain("q=harbours"));
    await shows(1);
    expect(items()[0]?.textContent).toContain("exec-harbours");
    document.body.innerHTML = "";
    await open(there);
    await shows(2);
    expect(items()[0]?.textContent).toContain("exec-waits");
  });

  it("shows the result for each selected execution", async () => {
    kept = [
      entry("exec-done"),
      entry("exec-1", { status: "waiting" }),
      entry("exec-2", { status: "waiting" }),
      entry("exec-3", { status: "paused" }),
      entry("exec-4", { status: "failed" }),
    ];
    server.post("/api/workflows/executions/bulk", ({ body }) => {
      const told = (body.executions as string[]).map((executionId) => {
        const isDone = kept.find((one) => one.executionId === executionId)?.status === "completed";
        const error = isDone && body.verb !== "delete" ? `there is nothing to ${body.verb}` : null;
        return { executionId, status: error ? "refused" : "done", error };
      });
      const { verb } = body;
      const next: Partial<Record<string, ExecutionEntry["status"]>> = { pause: "paused", cancel: "cancelled" };
      const done = new Set(told.filter((one) => one.error === null).map((one) => one.executionId));
      kept = kept
        .filter((one) => verb !== "delete" || !done.has(one.executionId))
        .map((one) => (done.has(one.executionId) ? { ...one, status: next[verb] ?? one.status } : one));
      return { executions: told };
    });
    const { user } = await open("/executions");
    await user.click(await screen.findByLabelText("Select all"));
    await screen.findByText("5 selected");
    screen.getByRole("button", { name: "Resume (1)" });
    screen.getByRole("button", { name: "Retry (1)" });
    await user.click(screen.getByRole("button", { name: "Pause (2)" }));
    await screen.findByText(/executions paused\./);
    await screen.findByText("One failed:");
    const [paused] = server.bodiesTo("post", "/api/workflows/executions/bulk");
    expect([paused.verb, paused.executions.length]).toEqual(["pause", 5]);
    const told = screen.getAllByRole("status").find((one) => one.textContent?.includes("exec-done"));
    expect(told?.textContent).toContain("there is nothing to pause");
    for (const one of ["exec-1", "exec-2"]) await user.click(await screen.findByLabelText(`Select ${one}`));
    await user.click(await screen.findByRole("button", { name: "Cancel (2)" }));
    await user.click((await dialog()).getByRole("button", { name: "Cancel 2 executions" }));
    await screen.findByText("2 executions cancelled.");
    expect(server.bodiesTo("post", "/api/workflows/executions/bulk")[1]).toEqual({
      verb: "cancel",
      executions: ["exec-2", "exec-1"],
    });
    await user.click(await screen.findByLabelText("Select exec-done"));
    await user.click(await screen.findByRole("button", { name: "Delete (1)" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete execution" }));
    await screen.findByText("One execution deleted.");
    await waitFor(() => expect(screen.queryByLabelText("Select exec-done")).toBeNull());
  });

  it("resumes and retries the selected executions", async () => {
    kept = [entry("exec-3", { status: "paused" }), entry("exec-4", { status: "failed" })];
    server.post("/api/workflows/executions/bulk", ({ body }) => ({
      executions: body.executions.map((executionId: string) => ({ executionId, status: "running", error: null })),
    }));
    const { user } = await open("/executions");
    await user.click(await screen.findByLabelText("Select exec-3"));
    await user.click(screen.getByRole("button", { name: "Resume (1)" }));
    await screen.findByText("One execution resumed.");
    await user.click(screen.getByLabelText("Select exec-4"));
    await user.click(await screen.findByRole("button", { name: "Retry (1)" }));
    await screen.findByText("One execution retried.");
    expect(server.bodiesTo("post", "/api/workflows/executions/bulk")).toEqual([
      { verb: "resume", executions: ["exec-3"] },
      { verb: "retry", executions: ["exec-4"] },
    ]);
  });

  it("opens a comparison of two selected executions, the older first", async () => {
    kept = [entry("exec-1"), entry("exec-2", { startedAt: AT + 1 })];
    const elsewhere = refusal(404, "unknown-execution", "another test compares");
    server.get("/api/workflows/executions/{eid}", elsewhere);
    server.get("/api/workflows/executions/{eid}/workflow", elsewhere);
    const { user, address } = await open("/executions");
    await user.click(await screen.findByLabelText("Select all"));
    await user.click(await screen.findByRole("button", { name: "Compare" }));
    await waitFor(() => expect(address()).toBe("/executions/compare?a=exec-1&b=exec-2"));
  });

  it("shows workflow names in the language of the page", async () => {
    workflows = [workflowEntry("letter", { name: "The letter", names: { en: "The letter", de: "Der Brief" } })];
    kept = [entry("exec-1")];
    await open("/executions", { language: "de" });
    await waitFor(() => expect(items()[0]?.textContent).toContain("Der Brief"));
    expect(within(items()[0] as HTMLElement).getByTitle("letter").textContent).toBe("Der Brief");
  });

  it("finds a workflow by typed text, and clears the filter again", async () => {
    workflows = Array.from({ length: 30 }, (_, at) => {
      const number = String(at).padStart(2, "0");
      return workflowEntry(`flow-${number}`, { name: `Tide ${number}` });
    });
    kept = [entry("exec-1", { workflowId: "flow-00" }), entry("exec-2", { workflowId: "flow-29" })];
    const { user, address } = await open("/executions?workflow=flow-00");
    const field = await screen.findByRole("combobox", { name: "Workflow" });
    await waitFor(() => expect(field).toHaveProperty("value", "Tide 00"));
    await shows(1);
    await user.click(field);
    await waitFor(() => expect(screen.getAllByRole("option")).toHaveLength(SHOWN + choicesOfOrder()));
    await screen.findByText("Showing the first 20. Type to find others.");
    await fill(user, field, "nowhere");
    await screen.findByText(/No results for “nowhere”\./);
    await fill(user, field, "tide 29");
    await screen.findByRole("option", { name: /Tide 29/ });
    await user.keyboard("{ArrowDown}{Enter}");
    await waitFor(() => expect(address()).toBe("/executions?workflow=flow-29"));
    await waitFor(() => expect(items()[0]?.textContent).toContain("Tide 29"));
    await fill(user, field, "");
    await waitFor(() => expect(address()).toBe("/executions"));
    await shows(2);
    await fill(user, field, "what is not chosen");
    await user.tab();
    await waitFor(() => expect(field).toHaveProperty("value", ""));
    const asked = server.requestsTo("get", "/api/workflows").map((one) => one.query);
    expect(asked.every((one) => one.get("limit") === "20" || one.has("id"))).toBe(true);
  });
});

/** The sort order is a select with options too. */
const choicesOfOrder = () => (screen.getByLabelText("Sort by") as HTMLSelectElement).options.length;

describe("work on executions", () => {
  it("shows chosen columns, and loads executions only for columns that need them", async () => {
    kept = [entry("exec-1", { startedBy: "ada" })];
    server.get("/api/workflows/executions/{eid}", {
      ...execution("exec-1"),
      input: { topic: "tides" },
      steps: 4,
    } as never);
    const { user } = await open("/executions");
    await shows(1);
    expect(items()[0]?.textContent).toContain("Started by: ada");
    expect(server.requestsTo("get", "/api/workflows/executions/{eid}")).toHaveLength(0);
    await user.click(screen.getByRole("button", { name: "Columns" }));
    await user.click(screen.getByRole("checkbox", { name: "Input" }));
    await user.click(screen.getByRole("checkbox", { name: "Started by" }));
    await waitFor(() => expect(items()[0]?.textContent).toContain("tides"));
    expect(items()[0]?.textContent).not.toContain("ada");
  });

  it("saves filters as a view, and opens it again", async () => {
    kept = [entry("exec-1"), entry("exec-2", { status: "failed" })];
    const { user } = await open("/executions?status=failed");
    await shows(1);
    await user.click(screen.getByRole("button", { name: "Views" }));
    await user.type(screen.getByLabelText("Name of the view"), "To repair");
    await user.click(screen.getByRole("button", { name: "Save view" }));
    await user.keyboard("{Escape}");
    await user.click(screen.getByRole("button", { name: "Clear" }));
    await shows(2);
    await user.click(screen.getByRole("button", { name: "Views" }));
    await user.click(screen.getByRole("button", { name: "To repair" }));
    await shows(1);
  });

  it("acts on all results of the filters after a count by the server", async () => {
    kept = [entry("exec-1", { status: "failed" })];
    const results = ["exec-1", "exec-0"].map((executionId) => ({ executionId, status: "failed", error: null }));
    server.post("/api/workflows/executions/bulk", { executions: results } as never);
    const { user } = await open("/executions?status=failed");
    await shows(1);
    await user.click(screen.getByRole("button", { name: "Act on all results" }));
    await user.click(await screen.findByRole("menuitem", { name: "Retry" }));
    const asked = await dialog();
    asked.getByText("Retry: 2 executions?");
    await user.click(asked.getByRole("button", { name: "Retry" }));
    await screen.findByText("2 executions retried.");
    expect(server.bodiesTo("post", "/api/workflows/executions/bulk")).toEqual([
      { verb: "retry", statuses: ["failed"], dryRun: true },
      { verb: "retry", statuses: ["failed"] },
    ]);
  });
});
