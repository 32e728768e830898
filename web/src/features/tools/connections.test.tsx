import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, keyed } from "@/testing/answers";
import { open, server } from "@/testing/page";
import { Reply } from "@/testing/server";
import { matches, type ToolConnection } from "./connections";

const WIKI: ToolConnection = {
  name: "wiki",
  kind: "mcp",
  source: "app",
  inUse: true,
  url: "https://mcp.example.com/mcp",
  command: [],
  server: "",
  hosts: [],
  tools: ["search"],
  requiresApproval: [],
  timeout: 60,
  auth: "bearer",
  authName: "",
  secret: "",
  changedAt: AT,
  changedBy: "root",
  etag: '"0badcafe0badcafe"',
};
const offer = (name: string, method = "") => ({
  name,
  tool: `x__${name}`,
  description: "Does it.",
  parameters: { type: "object", properties: { words: { type: "string" } } },
  method,
  url: "",
});
const OFFERS = {
  tools: [offer("search"), offer("delete")],
  failure: null,
  losses: [],
  hosts: [],
  auth: null,
  tried: null,
};
const KEY = "tk-canary-12345678";

let listed: ToolConnection[];
let commands: string[][];

beforeEach(() => {
  listed = [];
  commands = [];
  server.get("/api/tools", { tools: [], origins: {}, servers: [], next: null });
  server.get("/api/tool-connections", () => ({ connections: listed, commands }));
});

describe("connecting tools", () => {
  it("tests a server, saves the chosen tools, and shows no key", async () => {
    const sent: unknown[] = [];
    server.post("/api/tool-connections/{name}/test", ({ body }) => {
      sent.push(body);
      return OFFERS;
    });
    server.put("/api/tool-connections/{name}", ({ body }) => {
      sent.push(body);
      listed = [WIKI];
      return { saved: true, test: null };
    });
    const { user } = await open("/tools");
    await user.click(await screen.findByRole("button", { name: "Connect an MCP server" }));
    await user.type(screen.getByLabelText(/^Name/), "wiki");
    await user.type(screen.getByLabelText(/^Address/), WIKI.url);
    expect(screen.queryByLabelText("Connect by")).toBeNull();
    await user.selectOptions(screen.getByLabelText("Authentication"), "bearer");
    await user.type(screen.getByLabelText(/^Token/), KEY);
    await user.click(screen.getByRole("button", { name: "Test" }));
    await screen.findByText("2 of 2 tools may be called");
    await user.click(screen.getByRole("checkbox", { name: /^delete(?! needs)/ }));
    await user.click(screen.getByRole("checkbox", { name: "search needs approval" }));
    await user.click(screen.getByRole("button", { name: "Save" }));
    await screen.findByRole("button", { name: "Change wiki" });
    const shared = { kind: "mcp", url: WIKI.url, auth: "bearer", key: KEY };
    expect(sent).toEqual([
      expect.objectContaining({ ...shared, tools: ["*"] }),
      expect.objectContaining({ ...shared, tools: ["search"], requiresApproval: ["search"], test: false }),
    ]);
    expect(document.body.textContent).not.toContain(KEY);
  });

  it("shows why a test failed, keeps what was entered, and can save without a test", async () => {
    const failure = { code: "mcp-unreachable", message: "it cannot be reached", hint: "Start it." };
    server.post("/api/tool-connections/{name}/test", { ...OFFERS, tools: [], failure });
    server.put("/api/tool-connections/{name}", ({ body }) => {
      expect(body).toEqual(expect.objectContaining({ tools: ["*"], test: false }));
      return { saved: true, test: null };
    });
    const { user } = await open("/tools");
    await user.click(await screen.findByRole("button", { name: "Connect an MCP server" }));
    await user.type(screen.getByLabelText(/^Name/), "wiki");
    await user.type(screen.getByLabelText(/^Address/), WIKI.url);
    await user.click(screen.getByRole("button", { name: "Test" }));
    await screen.findByText(/it cannot be reached/);
    expect(screen.getByLabelText(/^Address/)).toHaveProperty("value", WIKI.url);
    await user.click(screen.getByRole("button", { name: "Save without test" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  });

  it("reads a document, proposes its authentication, chooses nothing by itself, and tries an operation", async () => {
    const calls: unknown[] = [];
    server.post("/api/tool-connections/{name}/test", ({ body }) => {
      calls.push(body);
      const test = { ...OFFERS, tools: [offer("showPet", "GET")], auth: { type: "header" as const, name: "X-Key" } };
      return { ...test, tried: calls.length > 1 ? { ok: true, result: { name: "Rex" }, failure: null } : null };
    });
    const { user } = await open("/tools");
    await user.click(await screen.findByRole("button", { name: "Connect an API" }));
    await user.type(screen.getByLabelText(/^Name/), "pets");
    await user.selectOptions(screen.getByLabelText("Connect by"), "text");
    await user.type(screen.getByLabelText(/^Document/), "openapi: 3.1.0");
    await user.click(screen.getByRole("button", { name: "Read the document" }));
    await screen.findByText("0 of one tool may be called");
    expect(screen.getByLabelText(/^Header/)).toHaveProperty("value", "X-Key");
    expect(screen.getByRole("button", { name: "Save" })).toHaveProperty("disabled", true);
    await user.type(screen.getByLabelText(/^Key/), KEY);
    await user.click(screen.getByRole("button", { name: "Try showPet" }));
    await user.type(await screen.findByLabelText("words"), "cats");
    await user.click(screen.getByRole("button", { name: "Run" }));
    await screen.findByText(/Rex/);
    expect(calls[1]).toEqual(
      expect.objectContaining({ tools: ["showPet"], call: { tool: "showPet", arguments: { words: "cats" } } }),
    );
  });

  it("offers a command only if the settings allow one", async () => {
    commands = [["mcp-files", "--root"]];
    const { user } = await open("/tools");
    await user.click(await screen.findByRole("button", { name: "Connect an MCP server" }));
    await user.selectOptions(screen.getByLabelText("Connect by"), "command");
    expect(screen.getByLabelText(/^Command/)).toHaveProperty("value", "mcp-files\n--root");
    expect(screen.queryByLabelText("Authentication")).toBeNull();
  });

  it("changes a connection only as it was read, and disconnects it", async () => {
    listed = [WIKI, { ...WIKI, name: "desk", source: "/etc/pointsman.toml" }];
    server.delete("/api/tool-connections/{name}", ({ headers }) => {
      expect(headers.get("if-match")).toBe(WIKI.etag);
      listed = [];
      return new Reply(204, undefined);
    });
    const { user } = await open("/tools");
    await screen.findByText("Set by /etc/pointsman.toml");
    expect(screen.queryByRole("button", { name: "Change desk" })).toBeNull();
    await user.click(screen.getByRole("button", { name: "Disconnect wiki" }));
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Disconnect" }));
    await screen.findByText("Nothing is connected.");
  });

  it("is offered to admins only", async () => {
    server.get("/api/me", keyed("vera", "editor"));
    await open("/tools");
    await screen.findByText("No tools.");
    expect(screen.queryByRole("button", { name: "Connect an API" })).toBeNull();
  });
});

describe("patterns of tools", () => {
  it("match whole names, with * for any text", () => {
    expect(matches(["read_*"], "read_text")).toBe(true);
    expect(matches(["read"], "read_text")).toBe(false);
    expect(matches(["a.b"], "axb")).toBe(false);
    expect(matches(["*"], "x")).toBe(true);
  });
});
