import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { open, server } from "@/testing/page";
import type { BudgetRow, Row } from "./usage";

const spent = (name: object, more: Partial<Row> = {}): Row => ({
  ...name,
  steps: 6,
  retries: 0,
  failures: 0,
  cached: 0,
  seconds: 1,
  modelCalls: 6,
  toolCalls: 0,
  inputTokens: 60,
  outputTokens: 60,
  cacheReadTokens: 0,
  costUsd: 0,
  unpricedCalls: 0,
  scriptedCalls: 6,
  ...more,
});

const budget = (more: Partial<BudgetRow>): BudgetRow => ({
  workflow: "chain",
  measure: "tokens",
  most: 0,
  highest: 0,
  left: 0,
  dearest: "exec-1",
  executions: 1,
  near: 0,
  over: 0,
  policy: "stop",
  setBy: "workflow",
  warnAt: 0.8,
  ...more,
});

const today = () => new Date().toISOString().slice(0, 10);
const ROWS: Record<string, () => Row[]> = {
  day: () => [spent({ day: today() })],
  workflow: () => [spent({ workflow: "chain", executions: 3 })],
  node: () => [spent({ node: "first" }, { steps: 3 }), spent({ node: "second" }, { steps: 3 })],
  model: () => [spent({ model: "scripted" }, { modelCalls: 2, scriptedCalls: 2 })],
  execution: () => [spent({ execution: "exec-1", workflow: "chain" })],
};

beforeEach(() => {
  server.get("/api/usage", ({ query }) => {
    const usage = ROWS[query.get("by") ?? ""]?.() ?? [];
    return { usage, rows: usage.length };
  });
  server.get("/api/budgets", { budgets: [] });
});

describe("usage page", () => {
  it("shows usage by node, offers a download, and links to the executions", async () => {
    const { user, address } = await open("/usage");
    const row = await screen.findByRole("row", { name: /Executions of chain/ });
    expect(within(row).getAllByRole("cell")[4]?.textContent).toBe("6");
    await user.click(screen.getAllByText("steps")[0] as HTMLElement);
    await screen.findByRole("img", { name: /steps per day/ });
    await user.click(screen.getByText("node", { exact: true }));
    await waitFor(() => expect(address()).toContain("by=node"));
    expect((await screen.findByRole("row", { name: /first/ })).textContent).toContain("50%");
    const file = screen.getByRole("link", { name: "Download as CSV" });
    expect(file.getAttribute("href")).toMatch(/^\/api\/usage\?by=node&.*csv=true$/);
    expect(file.getAttribute("download")).toBe("usage-node.csv");
    await user.click(screen.getByText("workflow", { exact: true }));
    server.get("/api/workflows/executions", { executions: [], next: null });
    await user.click(await screen.findByRole("link", { name: "Executions of chain" }));
    await waitFor(() => expect(address()).toBe("/executions?workflow=chain"));
  });

  it("explains that no execution ended in the period", async () => {
    server.get("/api/usage", ({ query }) => {
      const usage = query.get("since") === "2001-01-01" ? [] : (ROWS[query.get("by") ?? ""]?.() ?? []);
      return { usage, rows: usage.length };
    });
    const { user } = await open("/usage?range=own&since=2001-01-01&until=2001-02-01");
    await screen.findByText("No executions finished in this period.");
    expect(server.requestsTo("get", "/api/usage")[0]?.query.get("until")).toBe("2001-02-01");
    await user.click(screen.getByText("7 days"));
    await screen.findByRole("row", { name: /Executions of chain/ });
  });

  it("links from a number to its executions, and shows how near they came to their budgets", async () => {
    server.get("/api/budgets", {
      budgets: [
        budget({ measure: "modelCalls", most: 2, highest: 2, left: 0, over: 1 }),
        budget({ measure: "tokens", most: 1_000_000, highest: 120, left: 999_880 }),
      ],
    });
    const { user, address } = await open("/usage?by=model");
    await screen.findByText("6 calls were answered by the scripted model (free).");
    expect(screen.queryByText(/without a known price/)).toBeNull();
    await user.click(await screen.findByRole("button", { name: "Executions of scripted" }));
    await waitFor(() => expect(address()).toContain("by=execution"));
    const only = await screen.findByRole("list", { name: "Filters" });
    expect(only.textContent?.trim()).toBe("model: scripted");
    expect(server.requestsTo("get", "/api/usage").at(-1)?.query.getAll("of")).toEqual(["model:scripted"]);
    await within(screen.getByRole("table", { name: "Usage" })).findByRole("link", { name: /exec-1/ });
    await user.click(within(only).getByRole("button"));
    await waitFor(() => expect(screen.queryByRole("list", { name: "Filters" })).toBeNull());
    const budgets = await screen.findByRole("table", { name: "Budgets" });
    const calls = within(budgets).getByRole("row", { name: /model calls/ });
    expect(calls.textContent).toContain("2, 0 left");
    expect(calls.textContent).toContain("1 reached the limit");
    expect(within(budgets).getByRole("row", { name: /tokens/ }).textContent).toContain("OK");
    expect(within(calls).getByRole("link", { name: "2, 0 left" }).getAttribute("href")).toBe("/executions/exec-1");
  });

  it("explains how to set a budget if there is none", async () => {
    await open("/usage");
    await screen.findByText("No budgets.");
  });
});
