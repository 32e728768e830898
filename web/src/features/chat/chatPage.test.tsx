import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { ExecutionEntry, Schemas } from "@/api/views";
import { AT, entry, execution } from "@/testing/answers";
import { dialog, fill, noDialog, open, server } from "@/testing/page";
import { requirement } from "@/testing/requirement";
import { type RecordedRequest, Reply, refusal } from "@/testing/server";

const EXECUTIONS = "/api/workflows/executions";
const PAGE = 50;

let speakers: Schemas["ChatWorkflowView"][] = [];
let talks: Schemas["ConversationEntry"][] = [];
let said: ReturnType<typeof entry>[] = [];
let words: Record<string, string> = {};
let humanInLoop = "never";

const speaker = (id: string, name: string, more: Partial<Schemas["ChatWorkflowView"]> = {}) => ({
  id,
  revision: 1,
  names: null,
  version: null,
  dialect: "native",
  builtIn: false,
  createdAt: AT,
  author: "ada",
  digest: "9f86d081",
  enabled: true,
  tags: [],
  published: null,
  label: null,
  folder: "",
  name,
  description: null,
  conversational: true,
  field: "message",
  files: [],
  ...more,
});

const talk = (sessionId: string, title: string) => ({
  sessionId,
  title,
  executionId: "exec-1",
  named: false,
  owner: null,
  startedAt: AT,
  updatedAt: AT,
  status: "completed" as const,
  workflowId: "desk",
  etag: '"t1"',
});

/** Start a turn, which runs until a test changes its status. */
function begin({ at, body }: RecordedRequest) {
  const executionId = `exec-${said.length + 1}`;
  words[executionId] = Object.values(body.input as object)[0] as string;
  said = [entry(executionId, { workflowId: at.id ?? "", status: "running", sessionId: body.sessionId }), ...said];
  return { executionId, status: "running", scripted: false } as never;
}

const become = (id: string, status: ExecutionEntry["status"]) => {
  said = said.map((one) => (one.executionId === id ? { ...one, status: status as "completed" } : one));
};

function executionOf(id: string) {
  const one = said.find((each) => each.executionId === id);
  const failed = [{ code: "model-refused", message: "the model refused", retryable: false, hint: "Ask for less." }];
  return {
    ...execution(id, { status: (one?.status ?? "running") as "completed" }),
    workflowId: one?.workflowId ?? "desk",
    input: { message: words[id] ?? "" },
    errors: one?.status === "failed" ? failed : [],
  } as never;
}

beforeEach(() => {
  speakers = [speaker("desk", "Help desk"), speaker("poem", "Poet", { conversational: false, field: "goal" })];
  [talks, said, words, humanInLoop] = [[], [], {}, "never"];
  server.get("/api/chat/workflows", ({ query }) => {
    const ids = query.getAll("id");
    const wanted = (query.get("search") ?? "").toLowerCase();
    const fits = speakers
      .filter((one) => ids.length === 0 || ids.includes(one.id))
      .filter((one) => `${one.id} ${one.name}`.toLowerCase().includes(wanted));
    return { workflows: fits.slice(0, PAGE), next: fits.length > PAGE ? "more" : null };
  });
  server.get("/api/sessions", ({ query }) => ({
    sessions: talks.filter((one) => one.title.toLowerCase().includes((query.get("q") ?? "").toLowerCase())),
    next: null,
  }));
  server.get(EXECUTIONS, () => ({ executions: said, next: null }));
  server.get(`${EXECUTIONS}/{eid}`, ({ at }) => executionOf(at.eid ?? ""));
  server.get(`${EXECUTIONS}/{eid}/events`, ({ at }) => {
    const status = said.find((one) => one.executionId === at.eid)?.status ?? "running";
    return { events: [], last: null, status } as never;
  });
  server.get(`${EXECUTIONS}/{eid}/workflow`, { document: { id: "desk", nodes: [], edges: [] } } as never);
  server.get("/api/workflows/{id}", {
    document: { id: "desk", config: { humanInLoop }, nodes: [], edges: [] },
  } as never);
  server.post("/api/workflows/{id}/execute", begin);
});

const message = () => screen.findByLabelText<HTMLTextAreaElement>("Message");

describe("chat", () => {
  it("finds, renames and deletes conversations", async () => {
    talks = [talk("chat-1", "Hello"), talk("chat-2", "Tides")];
    server.patch("/api/sessions/{id}", ({ at, body }) => {
      talks = talks.map((one) => (one.sessionId === at.id ? { ...one, title: body.title } : one));
      return talks[0] as never;
    });
    server.delete("/api/sessions/{id}", ({ at }) => {
      talks = talks.filter((one) => one.sessionId !== at.id);
      return new Reply(204, undefined);
    });
    const { user } = await open("/chat");
    const list = within((await screen.findAllByRole("navigation", { name: "Conversations" }))[0] as HTMLElement);
    await user.click(await list.findByRole("button", { name: "Actions for “Hello”" }));
    await user.click(await screen.findByRole("menuitem", { name: "Rename" }));
    const renamed = await dialog();
    await fill(user, renamed.getByLabelText("Title"), "Greetings");
    await user.click(renamed.getByRole("button", { name: "Save" }));
    await list.findByRole("link", { name: /Greetings/ });
    expect(server.requestsTo("patch", "/api/sessions/{id}")[0]?.headers.get("if-match")).toBe('"t1"');
    await fill(user, list.getByRole("searchbox"), "nothing like it");
    await list.findByText("No matching conversations.");
    await fill(user, list.getByRole("searchbox"), "greet");
    await user.click(await list.findByRole("button", { name: "Actions for “Greetings”" }));
    await user.click(await screen.findByRole("menuitem", { name: "Delete" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete" }));
    await noDialog();
    expect(talks.map((one) => one.sessionId)).toEqual(["chat-2"]);
  });

  requirement("S1-O15");
  it("finds a chat workflow among many, and starts the workflow that a message mentions", async () => {
    speakers = Array.from({ length: 60 }, (_, n) => speaker(`talk-${n}`, `Pilot ${n}`));
    const { user } = await open("/chat");
    const links = () => screen.queryAllByRole("link", { name: /^Pilot/ });
    await waitFor(() => expect(links()).toHaveLength(PAGE));
    await fill(user, screen.getByLabelText("Search workflows"), "pilot 58");
    await waitFor(() => expect(links()).toHaveLength(1));
    await user.click(links()[0] as HTMLElement);
    await screen.findByRole("heading", { name: "Pilot 58", level: 1 });
    await user.type(await message(), "@talk-59");
    await screen.findByRole("option", { name: "Pilot 59 @talk-59" });
    await user.keyboard("{Enter}");
    expect((await message()).value).toBe("@talk-59 ");
    await user.type(await message(), "Good morning{Enter}");
    const turn = await screen.findByRole("article", { name: "Good morning" });
    within(turn).getByText("@talk-59");
    const [asked] = server.requestsTo("post", "/api/workflows/{id}/execute");
    expect([asked?.at.id, asked?.body.input]).toEqual(["talk-59", { message: "Good morning" }]);
  });

  it("distinguishes workflows with the same name", async () => {
    speakers = [speaker("talk-a", "Pilot"), speaker("talk-b", "Pilot"), speaker("builtin:forge", "AgentForge")];
    const { user } = await open("/chat");
    await screen.findByRole("link", { name: /Pilot\s*talk-a/ });
    within(screen.getByRole("link", { name: /AgentForge/ })).getByText("built-in");
    await user.click(screen.getByRole("link", { name: /Pilot\s*talk-b/ }));
    await screen.findByRole("heading", { name: "Pilot", level: 1 });
    await screen.findByText("talk-b");
  });

  it("shows why a turn failed and tries it again", async () => {
    server.post(`${EXECUTIONS}/{eid}/retry`, ({ at }) => {
      become(at.eid ?? "", "completed");
      return executionOf(at.eid ?? "");
    });
    said = [entry("exec-1", { workflowId: "desk", status: "failed" as "completed", sessionId: "chat-1" })];
    const { user } = await open("/chat/desk/chat-1");
    await waitFor(() => expect(screen.getByRole("alert").textContent).toContain("Ask for less."));
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await waitFor(() => expect(screen.queryByRole("alert")).toBeNull());
  });

  it("shows the working nodes and stops them", async () => {
    humanInLoop = "real_time";
    const definition = { id: "desk", config: { conversational: true, humanInLoop }, nodes: [], edges: [] };
    server.get("/api/workflows/{id}", { document: definition } as never);
    server.post(`${EXECUTIONS}/{eid}/steer`, ({ at }) => executionOf(at.eid ?? ""));
    server.post(`${EXECUTIONS}/{eid}/cancel`, ({ at }) => {
      become(at.eid ?? "", "cancelled");
      return executionOf(at.eid ?? "");
    });
    const { user } = await open("/chat/desk");
    await user.type(await message(), "Begin{Enter}");
    await screen.findByPlaceholderText("Send a message to the running agents…");
    await user.type(await message(), "Keep it short{Enter}");
    await waitFor(async () => expect((await message()).value).toBe(""));
    expect(server.bodiesTo("post", `${EXECUTIONS}/{eid}/steer`)).toEqual([{ messages: ["Keep it short"] }]);
    await user.click(screen.getByRole("button", { name: "Stop" }));
    await waitFor(() => expect(server.bodiesTo("post", `${EXECUTIONS}/{eid}/cancel`)).toHaveLength(1));
    await screen.findByText("The answer was cancelled.");
  });

  it("marks only the turns that the scripted model answers", async () => {
    said = [
      entry("exec-2", { workflowId: "desk", sessionId: "chat-1" }),
      entry("exec-1", { workflowId: "desk", sessionId: "chat-1" }),
    ];
    words = { "exec-1": "Hello", "exec-2": "Goodbye" };
    server.get(`${EXECUTIONS}/{eid}`, ({ at }) => {
      return { ...(executionOf(at.eid ?? "") as object), scripted: at.eid === "exec-1" } as never;
    });
    talks = [talk("chat-1", "Hello")];
    await open("/chat/desk/chat-1");
    const turn = within(await screen.findByRole("article", { name: "Hello" }));
    turn.getByText("Test answer of the scripted model or of a scripted tool.");
    const other = within(await screen.findByRole("article", { name: "Goodbye" }));
    expect(other.queryByRole("note")).toBeNull();
  });

  it("sends files if the workflow accepts them", async () => {
    speakers = [speaker("picture", "Painter", { files: ["image"] })];
    server.post("/api/workflows/{id}/execute/files", () => {
      words = { "exec-1": "What is this?" };
      said = [entry("exec-1", { workflowId: "picture", status: "running" as "completed", sessionId: "chat-1" })];
      return { executionId: "exec-1", status: "running", scripted: false } as never;
    });
    const { user } = await open("/chat/picture");
    await user.upload(await screen.findByLabelText("Attach file"), new File(["png"], "harbour.png"));
    await screen.findByText("harbour.png");
    await user.type(await message(), "What is this?{Enter}");
    await waitFor(() => expect(server.requestsTo("post", "/api/workflows/{id}/execute/files")).toHaveLength(1));
    await waitFor(() => expect(screen.queryByRole("button", { name: /Remove|Detach/ })).toBeNull());
  });

  it("keeps the message if the server rejects it", async () => {
    server.post("/api/workflows/{id}/execute", () => refusal(429, "too-many-requests", "wait a moment"));
    const { user } = await open("/chat/desk");
    await user.type(await message(), "Hello{Enter}");
    await screen.findByRole("alert");
    expect((await message()).value).toBe("Hello");
  });
});
