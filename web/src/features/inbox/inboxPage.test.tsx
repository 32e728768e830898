import { act, screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { Execution, Gate } from "@/api/views";
import { BOARD } from "@/stream/subscribe";
import { AT, execution, gate, keyed, listed } from "@/testing/answers";
import { dialog, expectText, fill, noDialog, open, server } from "@/testing/page";
import { type RecordedRequest, type Reply, refusal } from "@/testing/server";

const RESPOND = "/api/workflows/executions/{eid}/respond";
const NOTHING = "Nothing to do.";
const GONE = "No longer open";
const MOVED = "The data changed while you were reading. Review it before you answer.";

/** The waiting executions, in inbox order. */
let waiting: { id: string; gate: Gate; workflow: string }[] = [];
let answers: Execution["answers"] = [];
/** Hook that a test sets to run before an answer is processed. */
let first: ((asked: RecordedRequest) => Reply | undefined) | null = null;

const wait = (id: string, more: Partial<Gate> = {}, workflow = "letter") =>
  waiting.push({ id, gate: gate("review", { ...more, openedAt: AT + waiting.length }), workflow });

function close(id: string, action: string, by = "ben") {
  const one = waiting.find((each) => each.id === id);
  waiting = waiting.filter((each) => each !== one);
  answers = [{ nodeId: "review", step: one?.gate.step ?? "review", action, by, cause: "answer", at: AT + 100 }];
}

const change = (id: string, more: Partial<Gate>) => {
  waiting = waiting.map((one) => (one.id === id ? { ...one, gate: { ...one.gate, ...more } } : one));
};

function executionOf(id: string) {
  const one = waiting.find((each) => each.id === id);
  return execution(id, { status: one ? "waiting" : "completed", waiting: one ? [one.gate] : [], answers });
}

/** Report a change elsewhere through the board stream. */
async function heard() {
  await waitFor(() => expect(server.followers(BOARD)).toBeGreaterThan(0));
  await act(async () => server.sendEvent(BOARD, "workflow.execution.changed", {}));
}

const link = () => screen.findByRole("link", { name: /Open execution of/ });
const leadsTo = (id: string) =>
  waitFor(async () => expect((await link()).getAttribute("href")).toBe(`/executions/${id}`));
const button = (name: string) => screen.findByRole("button", { name: new RegExp(`^${name}`) });
const wordsIn = (name: string | RegExp) => screen.getByLabelText<HTMLInputElement>(name).value;

beforeEach(() => {
  waiting = [];
  answers = [];
  first = null;
  server.get("/api/inbox", () => ({
    gates: waiting.map((one) => listed(one.id, one.gate, { workflowId: one.workflow })),
    next: null,
  }));
  server.get("/api/workflows/executions/{eid}", ({ at }) => executionOf(at.eid ?? ""));
  server.get("/api/workflows/executions/{eid}/workflow", {
    graph: { regions: [], implied: [] },
    document: { id: "letter", nodes: [{ id: "review", type: "human", name: "Look it over" }], edges: [] },
  });
  server.post(RESPOND, (asked) => {
    const refused = first?.(asked);
    if (refused) return refused;
    const id = asked.at.eid ?? "";
    const now = waiting.find((one) => one.id === id);
    if (!now) return refusal(409, "gate-closed", "gate 'review' is closed");
    if (asked.body.digest !== now.gate.digest) return refusal(409, "gate-changed", "the gate shows something else");
    close(id, asked.body.action, "local");
    return executionOf(id);
  });
});

describe("inbox", () => {
  it("answers by keyboard and opens the next gate", async () => {
    wait("exec-1");
    wait("exec-2");
    const { user } = await open("/inbox");
    await leadsTo("exec-1");
    await user.keyboard("j");
    await leadsTo("exec-2");
    await user.keyboard("k");
    await leadsTo("exec-1");
    await button("Approve");
    await user.keyboard("a");
    await leadsTo("exec-2");
    await button("Approve");
    await user.keyboard("a");
    await screen.findByText(NOTHING);
    wait("exec-3");
    await heard();
    await leadsTo("exec-3");
    expect(server.requestsTo("post", RESPOND).map((one) => [one.at.eid, one.body.action])).toEqual([
      ["exec-1", "approve"],
      ["exec-2", "approve"],
    ]);
  });

  it("shows the lines after the question as text", async () => {
    wait("exec-1", { message: "Publish this?\n\nFirst.\n\nSecond." });
    await open("/inbox");
    await screen.findByRole("heading", { name: "Publish this?" });
    expect(screen.getByRole("region", { name: "Publish this?" }).querySelector("pre")?.textContent).toBe(
      "First.\n\nSecond.",
    );
  });

  it("shows edits beside the proposed values", async () => {
    const options = [{ value: "approve" }, { value: "edit" }];
    wait("exec-1", { shown: { text: "Words" }, editable: ["text"], values: { text: "Words" }, options });
    const { user } = await open("/inbox");
    await screen.findByText("Look it over");
    await fill(user, await screen.findByLabelText("Edit text"), "Better words");
    await expectText("+ After: Better words");
    expect(await button("Approve")).toHaveProperty("disabled", true);
    await user.click(await button("Edit"));
    await screen.findByText(NOTHING);
    expect(server.bodiesTo("post", RESPOND)[0]).toMatchObject({ action: "edit", data: { text: "Better words" } });
  });

  it("validates a form before it is sent, except for a rejection", async () => {
    const form = { type: "object", required: ["copies"], properties: { copies: { type: "integer", minimum: 2 } } };
    const options = [{ value: "approve" }, { value: "again" }, { value: "reject" }];
    wait("exec-1", { form, options });
    wait("exec-2", { form, options });
    const { user } = await open("/inbox");
    const copies = () => screen.findByRole("spinbutton", { name: /copies/ });
    await copies();
    await user.click(await button("Approve"));
    await screen.findByText("is required");
    expect(document.activeElement).toBe(await copies());
    await fill(user, await copies(), "1");
    await user.click(await button("Approve"));
    await screen.findByText("must be at least 2");
    expect(server.bodiesTo("post", RESPOND)).toEqual([]);
    await fill(user, await copies(), "3");
    await user.click(await button("Approve"));
    await leadsTo("exec-2");
    await copies();
    await user.click(await button("Reject"));
    await screen.findByText(NOTHING);
    const [approved, rejected] = server.bodiesTo("post", RESPOND);
    expect(approved.data).toEqual({ copies: 3 });
    expect([rejected.action, rejected.data]).toEqual(["reject", undefined]);
  });

  it("reports that another user answered first, and keeps the draft", async () => {
    wait("exec-1");
    const { user } = await open("/inbox");
    await button("Approve");
    first = () => {
      close("exec-1", "approve");
      first = null;
      return undefined;
    };
    await fill(user, screen.getByLabelText(/^Comment/), "Too dry");
    await user.click(await button("again"));
    await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("is closed"));
    await heard();
    await screen.findByText(new RegExp(GONE));
    expect(wordsIn(/^Comment/)).toBe("Too dry");
    await user.click(await button("Next request"));
    await screen.findByText(NOTHING);
  });

  it("keeps the selected gate on display when another user answers it", async () => {
    wait("exec-1");
    wait("exec-2");
    const { user } = await open("/inbox");
    await leadsTo("exec-1");
    await fill(user, await screen.findByLabelText(/^Comment/), "Too dry, I think");
    close("exec-1", "approve");
    await heard();
    await screen.findByText(new RegExp(GONE));
    await screen.findByText(/Already answered by ben: Approve\./);
    await screen.findByText(/Your input was not sent\./);
    expect(wordsIn(/^Comment/)).toBe("Too dry, I think");
    expect(screen.queryByRole("button", { name: "Approve" })).toBeNull();
    await leadsTo("exec-1");
    await user.click(await button("Next request"));
    await leadsTo("exec-2");
  });

  it("keeps an answer while the server is away and sends it once", async () => {
    wait("exec-1");
    let times = 0;
    first = (asked) => {
      times += 1;
      if (times === 1) throw new TypeError("connection refused");
      if (times === 2) return refusal(503, "closing", "It goes.");
      expect(asked.body.action).toBe("again");
      return undefined;
    };
    const { user } = await open("/inbox");
    await user.click(await button("again"));
    await expectText("Your answer is kept and will be sent again.");
    await screen.findByText(NOTHING);
    expect(screen.queryByRole("alert")).toBeNull();
    const keys = server.bodiesTo("post", RESPOND).map((one) => one.key);
    expect([keys.length, new Set(keys).size]).toEqual([3, 1]);
  });

  it("asks the user to confirm a gate that changed", async () => {
    const options = [{ value: "approve" }, { value: "edit" }, { value: "reject" }];
    wait("exec-1", { shown: { letter: "old" }, editable: ["letter"], values: { letter: "old" }, options });
    const { user } = await open("/inbox");
    const letter = await screen.findByLabelText("Edit letter");
    await fill(user, letter, "mine");
    await fill(user, screen.getByLabelText(/^Comment/), "shorter");
    change("exec-1", { shown: { letter: "new" }, values: { letter: "new" }, digest: "digest-2" });
    await heard();
    await screen.findByText(MOVED);
    expect([wordsIn("Edit letter"), wordsIn(/^Comment/)]).toEqual(["mine", "shorter"]);
    expect(
      screen
        .getAllByRole("deletion")
        .map((one) => one.textContent)
        .join(),
    ).toContain("new");
    for (const name of ["Approve", "Edit", "Reject"]) expect(await button(name)).toHaveProperty("disabled", true);
    expect(screen.queryByText(new RegExp(GONE))).toBeNull();
    await user.click(await button("Continue with the new data"));
    expect(screen.queryByText(MOVED)).toBeNull();
    await user.click(await button("Edit"));
    await screen.findByText(NOTHING);
    expect(server.bodiesTo("post", RESPOND)).toHaveLength(1);
    expect(server.bodiesTo("post", RESPOND)[0]).toMatchObject({
      digest: "digest-2",
      data: { letter: "mine" },
      comment: "shorter",
    });
  });

  it("shows the change when an answer was sent for an older state", async () => {
    const options = [{ value: "approve" }, { value: "edit" }];
    wait("exec-1", { shown: { letter: "old" }, editable: ["letter"], values: { letter: "old" }, options });
    const { user } = await open("/inbox");
    await screen.findByLabelText("Edit letter");
    first = () => {
      change("exec-1", { shown: { letter: "new" }, values: { letter: "new" }, digest: "digest-2" });
      first = null;
      return undefined;
    };
    await user.click(await button("Approve"));
    await screen.findByText(MOVED);
    await waitFor(() => expect(wordsIn("Edit letter")).toBe("new"));
    await user.click(await button("Continue with the new data"));
    await user.click(await button("Approve"));
    await screen.findByText(NOTHING);
  });

  it("shows votes, filters by assignee, and delegates", async () => {
    server.get("/api/me", keyed("ben", "operator"));
    const approvers = { users: ["ada", "ben", "cyd"], quorum: 2, rejectQuorum: 1, delegable: true };
    wait("exec-1", { approvers, votes: [{ by: "ada", action: "approve", comment: "Fine by me" }] });
    server.post("/api/workflows/executions/{eid}/delegate", ({ body }) => {
      change("exec-1", { delegated: { ben: body.to } });
      return executionOf("exec-1");
    });
    const { user } = await open("/inbox");
    await screen.findByText(/1 of 2 votes/);
    expect(screen.getByRole("list", { name: "Votes" }).textContent).toContain("ada: Approve – Fine by me");
    await user.selectOptions(screen.getByLabelText("Assigned to"), "Anyone");
    await screen.findByText("No matching requests.");
    await user.selectOptions(screen.getByLabelText("Assigned to"), "Me");
    await user.click(await button("Delegate"));
    const form = await dialog();
    await fill(user, form.getByLabelText(/^Delegate to/), "dora");
    await fill(user, form.getByLabelText(/^Reason/), "She knows the tides");
    await user.click(form.getByRole("button", { name: "Delegate" }));
    await noDialog();
    expect(server.bodiesTo("post", "/api/workflows/executions/{eid}/delegate")).toEqual([
      { gateId: "review", to: "dora", comment: "She knows the tides" },
    ]);
    await waitFor(() => expect(screen.queryByRole("button", { name: "Approve" })).toBeNull());
    await user.selectOptions(screen.getByLabelText("Assigned to"), "Me or anyone");
    expect(screen.queryByRole("button", { name: "Approve" })).toBeNull();
  });

  it("names the person who delegated in German", async () => {
    server.get("/api/me", keyed("dora", "operator"));
    const approvers = { users: ["ada", "ben"], quorum: 2, rejectQuorum: 1, delegable: true };
    wait("exec-1", { approvers, delegated: { ben: "dora" } });
    const { user } = await open("/inbox", { language: "de" });
    await screen.findByText(/Von ben an dora weitergegeben/);
    await user.click(await button("Freigeben"));
    await screen.findByText("Nichts zu tun.");
  });

  it("shows admins the gates of all users without a form", async () => {
    server.get("/api/me", keyed("root", "admin"));
    const approvers = { users: ["ada", "ben", "cyd"], quorum: 1, rejectQuorum: 1, delegable: false };
    wait("exec-1", { approvers });
    server.get("/api/inbox", ({ query }) => ({
      gates: query.get("everyone") ? waiting.map((one) => listed(one.id, one.gate)) : [],
      next: null,
    }));
    const { user } = await open("/inbox");
    await screen.findByText(NOTHING);
    await user.selectOptions(screen.getByLabelText("Assigned to"), "All");
    await leadsTo("exec-1");
    await screen.findByText("Only ada, ben, or cyd can answer.");
    for (const name of ["Approve", "again", "Delegate"]) expect(screen.queryByRole("button", { name })).toBeNull();
  });

  it("explains to viewers and to other groups why they may not answer", async () => {
    const approvers = { groups: ["desk"], quorum: 1, rejectQuorum: 1, delegable: true };
    wait("exec-1", { approvers });
    server.get("/api/me", keyed("eve", "operator"));
    const { user } = await open("/inbox");
    await user.click(await screen.findByRole("button", { name: /Send it\? letter/ }));
    await screen.findByText("Only the group desk can answer.");
    expect(screen.queryByLabelText(/^Comment/)).toBeNull();
    document.body.innerHTML = "";
    server.get("/api/me", keyed("ben", "viewer", "desk"));
    await open("/inbox");
    await screen.findByText("You can view this. Answering requires the operator role.");
    expect(screen.queryByRole("button", { name: "Approve" })).toBeNull();
  });

  it("shows the target of an escalation", async () => {
    server.get("/api/me", keyed("ada", "operator"));
    const to = (name: string) => ({ users: [name], quorum: 1, rejectQuorum: 1, delegable: false });
    wait("exec-1", { approvers: to("ada") });
    const { user } = await open("/inbox");
    await fill(user, await screen.findByLabelText(/^Comment/), "Almost done");
    change("exec-1", { approvers: to("ben"), level: 1 });
    server.get("/api/inbox", { gates: [], next: null });
    await heard();
    await screen.findByText(new RegExp(GONE));
    await screen.findByText("Only ben can answer.");
    expect(wordsIn(/^Comment/)).toBe("Almost done");
  });

  it("shows questions and node names in the language of the page", async () => {
    server.get("/api/workflows/executions/{eid}/workflow", {
      graph: { regions: [], implied: [] },
      document: {
        id: "polyglot",
        nodes: [{ id: "review", type: "human", name: { en: "Review", de: "Durchsicht" } }],
        edges: [],
      },
    });
    wait("exec-1", {
      message: "Send tides?",
      messages: { en: "Send tides?", de: "tides abschicken?" },
      nodeName: { en: "Review", de: "Durchsicht" },
      options: [{ value: "send", labels: { en: "Send it off", de: "Abschicken" } }],
      about: "node",
    });
    const { user } = await open("/inbox", { language: "de" });
    await screen.findByRole("heading", { name: "tides abschicken?" });
    await screen.findByRole("button", { name: /tides abschicken\?/ });
    await screen.findByText("Durchsicht");
    await user.click(await button("Abschicken"));
    await screen.findByText("Nichts zu tun.");
  });
});

describe("tool approvals", () => {
  it("are decided one by one", async () => {
    const calls = {
      1: { tool: "transfer", arguments: { to: "ann", amount: 5 } },
      2: { tool: "transfer", arguments: { to: "bob", amount: 7 } },
      3: { tool: "transfer", arguments: { to: "cyd", amount: 9 } },
    };
    const options = [{ value: "approve" }, { value: "edit" }, { value: "reject" }];
    wait("exec-1", { about: "calls", shown: calls, options }, "cashier");
    const { user } = await open("/inbox");
    expect((await screen.findByRole("list", { name: "Tool calls" })).children).toHaveLength(3);
    const send = await button("Send decisions");
    expect(send).toHaveProperty("disabled", true);
    const decide = async (call: number, choice: string) => {
      const group = screen.getByRole("group", { name: new RegExp(`Call ${call}: transfer`) });
      const label = [...group.querySelectorAll("label")].find((one) => one.textContent?.trim() === choice);
      await user.click(label as HTMLElement);
    };
    await decide(1, "Do not run");
    expect(await button("Approve all")).toHaveProperty("disabled", true);
    await decide(2, "Run with other arguments");
    const args = screen.getByLabelText(/^Other arguments/);
    await fill(user, args, "less");
    await screen.findByText(/Not valid arguments/);
    expect(send).toHaveProperty("disabled", true);
    await fill(user, args, '{"to": "bob", "amount": 1}');
    await expectText("+ After: 1");
    await fill(user, screen.getByLabelText(/^Comment/), "Ann has hers");
    await user.click(send);
    await screen.findByText(NOTHING);
    expect(server.bodiesTo("post", RESPOND)[0]).toMatchObject({
      action: "edit",
      comment: "Ann has hers",
      data: { 1: false, 2: { to: "bob", amount: 1 }, 3: true },
    });
  });
});
