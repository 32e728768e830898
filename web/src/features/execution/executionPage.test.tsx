import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { execution, workflowEntry } from "@/testing/answers";
import { dialog, fill, noDialog, open, server } from "@/testing/page";
import { Reply } from "@/testing/server";

const ONE = "/api/workflows/executions/{eid}";
const NODES = [
  { id: "write", type: "agent", name: { en: "Write", de: "Schreiben" } },
  { id: "review", type: "human" },
];

let now = {
  ...execution("exec-1"),
  waiting: [] as never[],
  warnings: [],
  artifacts: [],
  trigger: null,
  waitingFor: [],
};
let config: object = {};
let saved: object[] = NODES;

const show = (more: object) => {
  now = { ...execution("exec-1"), waiting: [], warnings: [], artifacts: [], trigger: null, waitingFor: [], ...more };
};

beforeEach(() => {
  [config, saved] = [{}, NODES];
  show({});
  server.get(ONE, () => now as never);
  server.get(`${ONE}/events`, () => ({ events: [], last: null, status: now.status }) as never);
  server.get(`${ONE}/workflow`, () => ({ document: { id: "letter", config, nodes: NODES, edges: [] } }) as never);
  server.get(
    "/api/workflows/{id}",
    () => ({ ...workflowEntry("letter"), document: { id: "letter", config, nodes: saved, edges: [] } }) as never,
  );
  server.get("/api/workflows/executions", { executions: [], next: null });
});

describe("execution page", () => {
  const stopped = (code: string, limit: object) =>
    show({ status: "interrupted", errors: [{ code, message: "more than it may", retryable: false }], limit });

  it("resumes after the user raises the limit", async () => {
    stopped("limit-steps", { now: 1, used: 1, next: 2, most: null });
    server.post(`${ONE}/resume`, () => {
      show({ status: "running" });
      return now as never;
    });
    const { user } = await open("/executions/exec-1");
    await user.click(await screen.findByRole("button", { name: "Resume" }));
    const asked = await dialog();
    asked.getByText("Current limit: 1, used: 1.");
    const field = asked.getByLabelText<HTMLInputElement>(/New limit: Steps/);
    expect(field.value).toBe("2");
    await fill(user, field, "9");
    await user.click(asked.getByRole("button", { name: "Raise and resume" }));
    await noDialog();
    expect(server.bodiesTo("post", `${ONE}/resume`)).toEqual([{ limits: { steps: 9 } }]);
  });

  it("grants more tries after a stall without asking for a number", async () => {
    stopped("limit-no-progress", { now: 3, used: 3, next: 6, most: null });
    server.post(`${ONE}/resume`, () => now as never);
    const { user } = await open("/executions/exec-1");
    await user.click(await screen.findByRole("button", { name: "Resume" }));
    const asked = await dialog();
    asked.getByText(/^3 more attempts are allowed\./);
    expect(asked.queryByRole("spinbutton")).toBeNull();
    await user.click(asked.getByRole("button", { name: "Continue" }));
    await noDialog();
    expect(server.bodiesTo("post", `${ONE}/resume`)).toEqual([{ limits: { "no-progress": 6 } }]);
  });

  it("steers with changed data only, even if the data change meanwhile", async () => {
    config = { humanInLoop: "real_time" };
    show({ state: { tone: "dry" } });
    server.post(`${ONE}/steer`, () => now as never);
    const { user } = await open("/executions/exec-1");
    await user.click(await screen.findByRole("button", { name: "Steer" }));
    const asked = await dialog();
    await user.click(asked.getByText("Edit data"));
    const data = asked.getByLabelText<HTMLTextAreaElement>("Data");
    await fill(user, data, data.value.replace("dry", "warm"));
    show({ state: { tone: "dry", heard: "one" } });
    await user.selectOptions(asked.getByLabelText(/Continue at/), "write");
    await user.click(asked.getByRole("button", { name: "Steer" }));
    await noDialog();
    expect(server.bodiesTo("post", `${ONE}/steer`)).toEqual([{ set: { tone: "warm" }, goto: "write" }]);
  });

  it("exports an execution, and deletes it after a confirmation", async () => {
    show({ status: "completed" });
    server.delete(ONE, new Reply(204, undefined));
    const { user, address } = await open("/executions/exec-1");
    const link = await screen.findByLabelText("Export");
    expect(link.getAttribute("href")).toBe("/api/workflows/executions/exec-1/export");
    await user.click(screen.getByRole("button", { name: "Delete" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(address()).toBe("/executions"));
    expect(server.requestsTo("delete", ONE)).toHaveLength(1);
  });

  it("explains in German why a failed execution cannot migrate", async () => {
    show({ status: "failed", errors: [{ code: "expression-failed", message: "divided by zero", retryable: false }] });
    saved = [{ id: "other", type: "agent" }];
    const misfit = { code: "missing-node", where: "write", message: "the other definition has no such node" };
    server.post(`${ONE}/move`, ({ body }) => {
      expect(body).toEqual({ to: "letter", checkOnly: true });
      return { executionId: "exec-1", fits: false, moved: false, problems: [misfit] } as never;
    });
    const { user } = await open("/executions/exec-1", { language: "de" });
    await user.click(await screen.findByRole("button", { name: "Mit den Änderungen erneut versuchen" }));
    const why = within(await screen.findByRole("alert"));
    why.getByText("Schreiben");
    expect(why.getByText("the other definition has no such node").closest("[lang=en]")).not.toBeNull();
  });

  describe("step panel", () => {
    const shown = async (printed: string | undefined, language: "en" | "de" = "en") => {
      const base = { step: "write", node: "write", at: 1_000 };
      const events = [
        { ...base, seq: 1, n: 0, kind: "step_started", scope: [], edge: "" },
        { ...base, seq: 2, n: 0, kind: "step_succeeded", result: "Dear all", ...(printed ? { printed } : {}) },
      ];
      show({ status: "completed" });
      server.get(`${ONE}/events`, () => ({ events, last: "2.0", status: "completed" }) as never);
      server.get(`${ONE}/calls`, { calls: [], next: null } as never);
      const page = await open("/executions/exec-1", { language });
      await page.user.click(await screen.findByRole("tab", { name: language === "en" ? "Costs" : "Kosten" }));
      const costs = within(await screen.findByRole("table"));
      await page.user.click(await costs.findByRole("button", { name: language === "en" ? "Write" : "Schreiben" }));
      await screen.findByText("Dear all");
    };

    it("shows the output that its tools printed", async () => {
      await shown("warning tools: slow\nline 2");
      const [english] = screen.getAllByText(/warning tools: slow/);
      expect(english?.textContent).toBe("warning tools: slow\nline 2");
      screen.getByRole("heading", { name: "Printed output" });
    });

    it("names printed output in German", async () => {
      await shown("eins", "de");
      screen.getByRole("heading", { name: "Textausgabe" });
    });

    it("hides the section for output if nothing was printed", async () => {
      await shown(undefined);
      expect(screen.queryByRole("heading", { name: "Printed output" })).toBeNull();
    });
  });
});

describe("run again", () => {
  it("starts the workflow with the same input, or with an edited one", async () => {
    show({ status: "completed", input: { goal: "tides" } });
    server.post("/api/workflows/{id}/execute", { executionId: "exec-1" } as never);
    server.get("/api/workflows/{id}", {
      document: {
        id: "letter",
        input: { type: "object", properties: { goal: { type: "string" } } },
        nodes: [],
        edges: [],
      },
    } as never);
    const { user } = await open("/executions/exec-1");
    await user.click(await screen.findByRole("button", { name: "Run again" }));
    await waitFor(() => expect(server.bodiesTo("post", "/api/workflows/{id}/execute")).toHaveLength(1));
    await user.click(screen.getByRole("button", { name: "Edit the input and run again" }));
    const asked = await dialog();
    await fill(user, await asked.findByLabelText(/goal/), "storms");
    await user.click(asked.getByRole("button", { name: "Start" }));
    await waitFor(() => expect(server.bodiesTo("post", "/api/workflows/{id}/execute")).toHaveLength(2));
    expect(server.bodiesTo("post", "/api/workflows/{id}/execute")).toMatchObject([
      { input: { goal: "tides" } },
      { input: { goal: "storms" } },
    ]);
  });
});
