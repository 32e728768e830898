import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { DatasetDetail } from "@/features/evaluations/evaluations";
import { AT, execution, local, noModels } from "@/testing/answers";
import { dialog, expectText, fill, main, open, server } from "@/testing/page";
import { refusal } from "@/testing/server";

const TRY = "/api/workflows/{id}/try";
const CASES = {
  id: "tickets",
  name: "Tickets",
  workflow: "triage",
  scorers: [],
  count: 2,
  by: "ada",
  at: AT,
  cases: [{ input: { topic: "tides", other: 1 } }, { input: { topic: ["moon"] } }],
} as unknown as DatasetDetail;
const MODELS = { ...noModels, default: "a:small" };

const started = (executionId: string) => ({ executionId, status: "running" as const, scripted: false, warnings: [] });
const modelOf = (body: { document: string }) => JSON.parse(body.document).nodes[0].config.model;

beforeEach(() => {
  server.get("/api/models", MODELS);
  server.get("/api/datasets", { datasets: [] });
  server.get("/api/workflows/executions/{eid}", ({ at }) => ({
    ...execution(at.eid as string, { status: "completed" }),
    output: { answer: `Answer of ${at.eid}` },
    durationMs: 1500,
    usage: {
      inputTokens: 11,
      outputTokens: 7,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      costUsd: 0.25,
      modelCalls: 1,
      toolCalls: 0,
    },
  }));
});

describe("the playground", () => {
  it("shows answer, tokens, time, cost and error of two models side by side, also after a visit of another page", async () => {
    server.post(TRY, ({ body }) =>
      modelOf(body) === "a:big" ? refusal(503, "model-unusable", "a has no key") : started("try-1"),
    );
    const { user, go } = await open("/playground");
    await fill(user, await screen.findByLabelText(/^User prompt/), "Hello");
    await user.click(screen.getByRole("button", { name: "Add column" }));
    await fill(user, screen.getByLabelText("Model 2"), "a:big");
    await user.click(screen.getByRole("button", { name: "Run" }));
    const first = within(await screen.findByRole("article", { name: "Default model" }));
    await first.findByText("Answer of try-1");
    for (const text of ["completed", "1.5 s", "$0.2500", /11.*7/]) first.getByText(text);
    expect(first.getByRole("link", { name: "Show execution" }).getAttribute("href")).toBe("/executions/try-1");
    within(screen.getByRole("article", { name: "a:big" })).getByText("a has no key");
    expect(server.requestsTo("post", TRY).map((one) => one.at.id)).toEqual(["playground", "playground"]);
    await go("/nowhere");
    await go("/playground");
    await main().findByText("Answer of try-1");
  });

  it("takes the rows of a dataset, and runs each", async () => {
    server.get("/api/datasets", { datasets: [CASES] });
    server.get("/api/datasets/{name}", CASES);
    server.post(TRY, ({ body }) => started(`try-${body.input.topic}`));
    const { user } = await open("/playground");
    await fill(user, await screen.findByLabelText(/^User prompt/), "About {{topic}}");
    await user.selectOptions(await screen.findByLabelText("From a dataset"), "Tickets");
    await waitFor(() => expect(screen.getAllByLabelText("topic")).toHaveLength(2));
    await user.click(screen.getByRole("button", { name: "Run" }));
    await screen.findByText("Answer of try-tides");
    expect(server.bodiesTo("post", TRY).map((one) => one.input)).toEqual([{ topic: "tides" }, { topic: ["moon"] }]);
  });

  it("goes back to an earlier version with its prompt and answers", async () => {
    server.post(TRY, ({ body }) => started(`try-${JSON.parse(body.document).nodes[0].config.prompt}`));
    const { user } = await open("/playground");
    for (const text of ["one", "two"]) {
      await fill(user, await screen.findByLabelText(/^User prompt/), text);
      await user.click(screen.getByRole("button", { name: "Run" }));
      await screen.findByText(`Answer of try-${text}`);
    }
    const versions = screen.getByLabelText("Versions");
    await user.selectOptions(versions, within(versions).getByRole("option", { name: /one$/ }));
    await screen.findByText("Answer of try-one");
    expect((screen.getByLabelText(/^User prompt/) as HTMLTextAreaElement).value).toBe("one");
  });

  it("stops the executions that run", async () => {
    server.post(TRY, started("try-1"));
    server.get("/api/workflows/executions/{eid}", execution("try-1", { status: "running" }));
    server.post("/api/workflows/executions/{eid}/cancel", execution("try-1", { status: "cancelled" }));
    const { user } = await open("/playground");
    await fill(user, await screen.findByLabelText(/^User prompt/), "Hello");
    await user.click(screen.getByRole("button", { name: "Run" }));
    await user.click(await screen.findByRole("button", { name: "Stop" }));
    await waitFor(() => expect(server.requestsTo("post", "/api/workflows/executions/{eid}/cancel")).toHaveLength(1));
  });

  it("saves the system prompt as an agent", async () => {
    server.get("/api/agents", { agents: [], next: null });
    server.post("/api/agents", refusal(422, "agent-invalid", "not a name"));
    const { user } = await open("/playground");
    await fill(user, await screen.findByLabelText("System prompt"), "Be brief.");
    await fill(user, screen.getByLabelText("Model 1"), "a:big");
    await user.click(screen.getByRole("button", { name: "Save as agent" }));
    const form = await dialog();
    await fill(user, form.getByRole("textbox", { name: /^Name/ }), "brief");
    await waitFor(() => expect(form.getByRole("button", { name: "Save agent" })).toHaveProperty("disabled", false));
    await user.click(form.getByRole("button", { name: "Save agent" }));
    await expectText("not a name");
    expect(server.bodiesTo("post", "/api/agents")).toEqual([
      { name: "brief", agent: { system: "Be brief.", model: "a:big" } },
    ]);
  });

  it("is read-only for operators", async () => {
    server.get("/api/me", { ...local, role: "operator" });
    await open("/playground");
    await screen.findByText("Running a prompt requires the role editor.");
    expect(screen.getByRole("button", { name: "Run" })).toHaveProperty("disabled", true);
  });
});
