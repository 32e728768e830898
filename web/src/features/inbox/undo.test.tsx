import { fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { execution, gate, listed } from "@/testing/answers";
import { expectText, fill, open, server } from "@/testing/page";
import { refusal } from "@/testing/server";
import { undoWindow } from "./heldAnswer";

const RESPOND = "/api/workflows/executions/{eid}/respond";
const button = (name: string) => screen.findByRole("button", { name: new RegExp(`^${name}`) });
const sent = () => server.requestsTo("post", RESPOND).map((one) => [one.at.eid, one.body.action]);
const leadsTo = (id: string) =>
  waitFor(() =>
    expect(screen.getByRole("link", { name: /Open execution of/ }).getAttribute("href")).toBe(`/executions/${id}`),
  );

let waiting: string[] = [];

beforeEach(() => {
  undoWindow.ms = 3_600_000;
  waiting = ["exec-1", "exec-2"];
  const executionOf = (id: string) =>
    execution(id, { status: waiting.includes(id) ? "waiting" : "completed", waiting: [gate("review")] });
  server.get("/api/inbox", () => ({ gates: waiting.map((id) => listed(id, gate("review"))), next: null }));
  server.get("/api/workflows/executions/{eid}", ({ at }) => executionOf(at.eid ?? ""));
  server.get("/api/workflows/executions/{eid}/workflow", {
    graph: { regions: [], implied: [] },
    document: { id: "letter", nodes: [{ id: "review", type: "human" }], edges: [] },
  });
  server.post(RESPOND, ({ at }) => {
    waiting = waiting.filter((id) => id !== at.eid);
    return executionOf(at.eid ?? "");
  });
});

describe("undo of an answer", () => {
  it("takes an answer back before it is sent, with its draft", async () => {
    const { user } = await open("/inbox");
    await leadsTo("exec-1");
    await fill(user, await screen.findByLabelText(/^Comment/), "Fine");
    await user.click(await button("Approve"));
    await leadsTo("exec-2");
    await expectText("“Approve” is sent in a few seconds.");
    await user.click(await button("Undo"));
    await leadsTo("exec-1");
    expect(screen.getByDisplayValue("Fine")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Undo" })).toBeNull();
    expect(sent()).toEqual([]);
  });

  it("takes an answer back by Ctrl+Z", async () => {
    const { user } = await open("/inbox");
    await user.click(await button("Approve"));
    await leadsTo("exec-2");
    await user.keyboard("{Control>}z{/Control}");
    await leadsTo("exec-1");
    expect(sent()).toEqual([]);
  });

  it("sends an answer with the next one, and on request", async () => {
    const { user } = await open("/inbox");
    await user.click(await button("Approve"));
    await leadsTo("exec-2");
    await user.keyboard("a");
    await waitFor(() => expect(sent()).toEqual([["exec-1", "approve"]]));
    await expectText("Nothing to do.");
    await user.click(await button("Send now"));
    await waitFor(() => expect(sent()).toHaveLength(2));
    await waitFor(() => expect(screen.queryByRole("button", { name: "Undo" })).toBeNull());
  });

  it("sends an answer when the page is left or closed", async () => {
    const { user, go } = await open("/inbox");
    await user.click(await button("Approve"));
    await leadsTo("exec-2");
    fireEvent(window, new Event("pagehide"));
    await waitFor(() => expect(sent()).toEqual([["exec-1", "approve"]]));
    await user.click(await button("Approve"));
    await expectText("Nothing to do.");
    server.get("/api/inbox/answered", { answers: [], next: null });
    await go("/inbox?list=answered");
    await waitFor(() => expect(sent()).toHaveLength(2));
  });

  it("shows a refused answer again, with its draft", async () => {
    server.post(RESPOND, () => refusal(409, "gate-closed", "gate 'review' is closed"));
    const { user } = await open("/inbox");
    await leadsTo("exec-1");
    await fill(user, await screen.findByLabelText(/^Comment/), "Fine");
    await user.click(await button("Approve"));
    await leadsTo("exec-2");
    await user.click(await button("Send now"));
    await leadsTo("exec-1");
    await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("is closed"));
    expect(screen.getByDisplayValue("Fine")).toBeTruthy();
  });

  it("sends an answer after the time has passed", async () => {
    undoWindow.ms = 1;
    await open("/inbox");
    (await button("Approve")).click();
    await waitFor(() => expect(sent()).toEqual([["exec-1", "approve"]]));
  });
});

const ANSWERED = {
  executionId: "exec-1",
  inside: null,
  workflowId: "letter",
  gateId: "gate-review",
  nodeId: "review",
  nodeName: "Review",
  message: "Send it?",
  messages: { en: "Send it?", de: "Abschicken?" },
  about: "node",
  item: null,
  round: null,
  by: "ada",
  action: "approve",
  comment: "Fine",
  closed: false,
  answeredAt: 1_700_000_000,
  visible: true,
};

describe("answered requests", () => {
  beforeEach(() => {
    server.get("/api/inbox/answered", ({ query }) => {
      if (query.get("after")) return { answers: [{ ...ANSWERED, executionId: "exec-0" }], next: null };
      const hidden = { ...ANSWERED, executionId: "exec-2", by: "ben", visible: false, closed: true };
      return { answers: query.get("everyone") ? [hidden] : [ANSWERED], next: query.get("everyone") ? null : "x" };
    });
  });

  it("are listed page by page, with links to their executions", async () => {
    const { user } = await open("/inbox");
    await user.click(await screen.findByRole("link", { name: "Answered" }));
    const link = await screen.findByRole("link", { name: "Send it?" });
    expect(link.getAttribute("href")).toBe("/executions/exec-1");
    await expectText("Approve · vote");
    await user.click(await button("Show more"));
    await waitFor(() => expect(screen.getAllByRole("link", { name: "Send it?" })).toHaveLength(2));
  });

  it("of other people have no link where the execution is not visible", async () => {
    const { user } = await open("/inbox?list=answered", { language: "de" });
    await screen.findByRole("link", { name: "Abschicken?" });
    await user.selectOptions(screen.getByLabelText("Beantwortet von"), "Alle");
    await expectText("ben");
    await waitFor(() => expect(screen.queryByRole("link", { name: "Abschicken?" })).toBeNull());
  });
});
