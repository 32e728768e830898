import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { components } from "@/api/schema";
import { noModels, noTools } from "@/testing/answers";
import { dialog, fill, main, open, rows, server } from "@/testing/page";
import { refusal, tagged } from "@/testing/server";

type Agent = components["schemas"]["AgentView"];

const GONE = refusal(404, "unknown-agent", "there is no such agent");

/** The revisions that the server has, newest last. */
let kept: Agent[] = [];
let users: string[] = [];

const revision = (agent: Agent["agent"], name = "writer"): Agent => ({
  name,
  agent,
  author: "local",
  revision: kept.length + 1,
  savedAt: 1_700_000_000,
});
const newest = () => kept[kept.length - 1] as Agent;
const told = (one: Agent) => tagged(one, `"${one.revision}"`);

function save(agent: Agent["agent"]): Agent {
  kept.push(revision(agent));
  return newest();
}

beforeEach(() => {
  kept = [];
  users = [];
  server.get("/api/agents", () => ({ agents: kept.slice(-1), next: null }));
  server.post("/api/agents", ({ body }) => save(body.agent));
  server.get("/api/agents/{name}", ({ at }) =>
    told(at.name?.includes("@") ? (kept[Number(at.name.split("@")[1]) - 1] as Agent) : newest()),
  );
  server.put("/api/agents/{name}", ({ body, headers }) =>
    headers.get("if-match") === `"${newest().revision}"`
      ? told(save(body.agent))
      : refusal(409, "revision-moved", `agent 'writer' is at revision ${newest().revision} now`),
  );
  server.delete("/api/agents/{name}", () => {
    kept = [];
    return undefined;
  });
  server.get("/api/agents/{name}/versions", () => ({ agents: [...kept].reverse(), next: null }));
  server.get("/api/agents/{name}/uses", () => ({
    workflows: users.map((workflowId) => ({ workflowId, names: ["writer"], revision: 1 })),
  }));
  server.get("/api/tools", noTools);
  server.get("/api/models", noModels);
});

describe("agent pages", () => {
  it("create an agent and save its settings", async () => {
    const { user, address } = await open("/agents");
    await screen.findByText("No agents yet.");
    await user.click(screen.getByRole("button", { name: "New agent" }));
    const form = await dialog();
    await fill(user, form.getByRole("textbox", { name: "Name" }), "writer");
    await fill(user, form.getByRole("textbox", { name: "System prompt" }), "You write letters.");
    await user.click(form.getByRole("button", { name: "Create" }));
    await waitFor(() => expect(address()).toBe("/agents/writer"));
    await user.type(await screen.findByLabelText("Tools"), "calculator{Enter}");
    await fill(user, screen.getByLabelText("Temperature"), "0.3");
    await user.selectOptions(screen.getByLabelText("Message history"), "This conversation");
    await user.click(screen.getByRole("button", { name: "Check the answer" }));
    await fill(user, screen.getByRole("textbox", { name: "Question to a model" }), "Is it polite?");
    await screen.findByText("not saved");
    await user.click(screen.getByRole("button", { name: "Save" }));
    await screen.findByText("saved");
    await waitFor(() => expect(rows("Revisions")).toHaveLength(3));
    expect(server.bodiesTo("post", "/api/agents")).toEqual([
      { name: "writer", agent: { system: "You write letters." } },
    ]);
    expect(server.bodiesTo("put", "/api/agents/{name}")).toEqual([
      {
        agent: {
          system: "You write letters.",
          tools: ["calculator"],
          temperature: 0.3,
          memory: { scope: "session" },
          guardrails: { after: [{ prompt: "Is it polite?" }] },
        },
      },
    ]);
  });

  it("restore an older revision", async () => {
    save({ system: "First." });
    save({ system: "Second." });
    const { user } = await open("/agents/writer");
    await waitFor(() =>
      expect(screen.getByRole("textbox", { name: "System prompt" })).toHaveProperty("value", "Second."),
    );
    await user.click(await screen.findByRole("button", { name: "Show revision 1" }));
    const shown = await dialog();
    await shown.findByText("First.");
    await user.click(shown.getByRole("button", { name: "Restore this revision" }));
    await waitFor(() =>
      expect(screen.getByRole("textbox", { name: "System prompt" })).toHaveProperty("value", "First."),
    );
    expect(newest()).toMatchObject({ revision: 3, agent: { system: "First." } });
  });

  it("reject a change if another user saved meanwhile", async () => {
    save({ system: "First." });
    const { user } = await open("/agents/writer");
    await fill(user, await screen.findByRole("textbox", { name: "System prompt" }), "Mine.");
    save({ system: "Theirs." });
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect((await screen.findAllByText(/is at revision 2 now/)).length).toBeGreaterThan(0);
    expect(screen.getByRole("textbox", { name: "System prompt" })).toHaveProperty("value", "Mine.");
    await user.click(await screen.findByRole("button", { name: "Discard my changes" }));
    expect(screen.getByRole("textbox", { name: "System prompt" })).toHaveProperty("value", "Theirs.");
    expect(kept).toHaveLength(2);
  });

  it("show why an agent failed and keep the message", async () => {
    save({ system: "You are kind." });
    server.post("/api/agents/{name}/try", refusal(422, "invalid-agent", "temperature: 9 is more than 2"));
    const { user } = await open("/agents/writer");
    await fill(user, await screen.findByLabelText("Temperature"), "9");
    const trying = within(screen.getByRole("region", { name: "Try it" }));
    const message = trying.getByRole<HTMLTextAreaElement>("textbox", { name: "Message" });
    await fill(user, message, "Hello");
    await user.keyboard("{Enter}");
    expect((await trying.findByRole("alert")).textContent).toContain("temperature");
    expect(message.value).toBe("Hello");
    expect(server.bodiesTo("post", "/api/agents/{name}/try")[0].agent).toEqual({
      system: "You are kind.",
      temperature: 9,
    });
  });

  it("show many agents page by page, and report that a name is taken", async () => {
    const all = Array.from({ length: 55 }, (_, at) => revision({ system: `Watch ${at}.` }, `mate-${at}`));
    server.get("/api/agents", ({ query }) => {
      const words = query.get("search") ?? "";
      const names = query.getAll("name");
      const named = all.filter((one) => names.length === 0 || names.includes(one.name));
      const fits = named.filter((one) => `${one.name} ${one.agent.system}`.includes(words));
      const begin = Number(query.get("after") ?? 0);
      return { agents: fits.slice(begin, begin + 50), next: fits.length > begin + 50 ? "50" : null };
    });
    server.get("/api/agents/{name}", ({ at }) => all.find((one) => one.name === at.name) ?? GONE);
    const { user } = await open("/agents");
    await screen.findByRole("table", { name: "Agents" });
    expect(rows("Agents")).toHaveLength(51);
    await user.click(screen.getByRole("button", { name: "Show more" }));
    await waitFor(() => expect(rows("Agents")).toHaveLength(56));
    await user.click(screen.getByRole("button", { name: "New agent" }));
    await fill(user, (await dialog()).getByLabelText(/^Name/), "mate-54");
    await screen.findByText("This name is already in use.");
    await user.keyboard("{Escape}");
    await user.click(await screen.findByRole("button", { name: "Discard" }));
    await fill(user, screen.getByLabelText("Search agents"), "Watch 54");
    await waitFor(() => expect(rows("Agents")).toHaveLength(2));
    expect(rows("Agents")[1]?.textContent).toContain("mate-54");
  });

  it("add one of many tools by a search in descriptions", async () => {
    const lift = (at: number) => ({
      name: `lift_${at}`,
      origin: "function",
      description: `Lifts crate ${at} out of the hold.`,
      parameters: {},
      side: "server" as const,
      idempotent: true,
      requiresApproval: false,
      enabled: true,
      off: null,
    });
    const lifts = Array.from({ length: 60 }, (_, at) => lift(at));
    server.get("/api/tools", ({ query }) => {
      const names = query.getAll("name");
      const fits = lifts.filter((one) => names.length === 0 || names.includes(one.name));
      const tools = fits.filter((one) => one.description.includes(query.get("search") ?? ""));
      return { ...noTools, tools: tools.slice(0, 20) };
    });
    save({ system: "You keep watch.", tools: ["lift_59", "abacus"] });
    const { user } = await open("/agents/writer");
    expect((await screen.findByTitle("Unknown tool.")).textContent).toContain("abacus");
    expect((await screen.findByTitle("Lifts crate 59 out of the hold.")).textContent).toContain("lift_59");
    await user.type(screen.getByRole("combobox", { name: "Tools" }), "crate 37");
    await waitFor(() => expect(screen.getAllByRole("option", { name: /lift_/ })).toHaveLength(1));
    await user.keyboard("{ArrowDown}{Enter}");
    await screen.findByRole("link", { name: "lift_37" });
    await user.click(screen.getByRole("button", { name: "Save" }));
    await screen.findByText("saved");
    expect(newest().agent.tools).toEqual(["lift_59", "abacus", "lift_37"]);
  });

  it("show the errors of an agent, and its uses before it is deleted", async () => {
    save({ system: "First." });
    users = ["letter"];
    const { user, address } = await open("/agents/writer");
    await user.click(await screen.findByText("Edit as JSON"));
    server.put("/api/agents/{name}", refusal(422, "invalid-agent", "temperature: 9 is more than 2"));
    const all = await screen.findByRole("textbox", { name: "Description" });
    await fill(user, all, '{"system": "First.", "temperature": 9}');
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect((await screen.findByRole("alert")).textContent).toContain("temperature");
    await within(await screen.findByRole("table", { name: "Used by" })).findByRole("link", { name: "letter" });
    await user.click(main().getByRole("button", { name: "Delete" }));
    const asked = await dialog();
    await asked.findByText(/cannot start without it: letter/);
    await user.click(asked.getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(address()).toBe("/agents"));
    await screen.findByText("No agents yet.");
    expect(server.requestsTo("delete", "/api/agents/{name}")[0]?.at).toEqual({ name: "writer" });
  });
});
