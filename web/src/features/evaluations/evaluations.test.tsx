import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, workflowEntry } from "@/testing/answers";
import { dialog, fill, main, open, server } from "@/testing/page";
import type { Dataset, DatasetDetail, Run, RunDetail } from "./evaluations";

const TICKETS: Dataset = {
  id: "tickets",
  name: "tickets",
  workflow: "triage",
  scorers: [{ name: "kind", kind: "match" }],
  count: 2,
  by: "ada",
  at: AT,
  etag: '"1"',
};
const run = (id: string, revision: number, kind: number): Run => ({
  executionId: id,
  workflow: "triage",
  revision,
  dataset: "tickets",
  scorers: [{ name: "kind", kind: "match" }],
  model: "",
  by: "ada",
  at: AT + revision,
  status: "completed",
  count: 2,
  failed: 0,
  scores: { kind },
});
const DETAIL = {
  ...TICKETS,
  cases: [{ input: { request: "Hi?" }, expected: { kind: "question" } }, { input: { request: "Fire" } }],
} as unknown as DatasetDetail;
const RESULT: RunDetail = {
  ...run("exec-2", 2, 0.5),
  failed: 1,
  cases: [
    {
      case: "case-1",
      input: { request: "Hi?" },
      expected: { kind: "question" },
      output: { kind: "question" },
      error: null,
      scores: { kind: 1 },
      reasons: { kind: "As expected." },
    },
    {
      case: "case-2",
      input: { request: "Fire" },
      expected: null,
      output: null,
      error: "timeout",
      scores: { kind: 0 },
      reasons: {},
    },
  ],
};

beforeEach(() => {
  server.get("/api/workflows", { workflows: [workflowEntry("triage", { name: "Triage" })], next: null });
  server.get("/api/datasets", { datasets: [TICKETS] });
  server.get("/api/datasets/{name}", DETAIL);
  server.get("/api/evaluations", { runs: [run("exec-2", 2, 0.5), run("exec-1", 1, 0.25)] });
});

describe("evaluations", () => {
  it("lists datasets, and saves a new one from a table", async () => {
    server.put("/api/datasets/{name}", TICKETS);
    const { user, address } = await open("/evaluations");
    await screen.findByRole("link", { name: "tickets" });
    await user.click(screen.getByRole("button", { name: "New dataset" }));
    const form = await dialog();
    await fill(user, form.getByRole("textbox", { name: /Id/ }), "tickets");
    await fill(user, form.getByRole("combobox", { name: /^Workflow/ }), "Triage");
    await waitFor(() => expect(server.requestsTo("get", "/api/workflows").some((one) => one.query.get("search"))));
    await user.tab();
    await fill(user, form.getByRole("textbox", { name: "Cases" }), "request,expected.kind\nHi?,question");
    await user.click(form.getByRole("button", { name: "Save" }));
    await waitFor(() => expect(address()).toBe("/evaluations/tickets"));
    expect(server.bodiesTo("put", "/api/datasets/{name}")).toEqual([
      {
        workflow: "triage",
        text: "request,expected.kind\nHi?,question",
        format: "csv",
        scorers: [{ name: "match", kind: "match", text: "", model: "" }],
      },
    ]);
  });

  it("shows the scores of the runs over revisions, and starts a run", async () => {
    server.post("/api/datasets/{name}/evaluate", {
      executionId: "exec-3",
      status: "running",
      scripted: false,
      warnings: [],
    });
    const { user } = await open("/evaluations/tickets");
    await screen.findByRole("img", { name: "Scores over runs" });
    const rows = within(screen.getByRole("table", { name: "Runs" }))
      .getAllByRole("row")
      .slice(1);
    expect(rows.map((one) => one.textContent)).toEqual([
      expect.stringMatching(/revision 2.*50%/),
      expect.stringMatching(/revision 1.*25%/),
    ]);
    await user.click(screen.getByRole("button", { name: "Evaluate" }));
    await waitFor(() => expect(server.requestsTo("post", "/api/datasets/{name}/evaluate")).toHaveLength(1));
  });

  it("shows each case of a run with its scores and errors", async () => {
    server.get("/api/evaluations/{eid}", RESULT);
    await open("/evaluations/tickets/exec-2");
    const cases = within(await screen.findByRole("table", { name: "Cases" }));
    cases.getByText("timeout");
    expect(cases.getByTitle("As expected.").textContent).toBe("100%");
    expect(main().getByRole("link", { name: "Show execution" }).getAttribute("href")).toBe("/executions/exec-2");
  });
});
