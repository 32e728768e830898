import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { keyed } from "@/testing/answers";
import { fill, open, rows, server } from "@/testing/page";
import { refusal } from "@/testing/server";
import type { Server, Tool } from "./tools";

const PAGE = 50;

const tool = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  origin: "builtin",
  description: `About ${name}.`,
  parameters: { type: "object", required: ["expression"], properties: { expression: { type: "string" } } },
  side: "server",
  idempotent: true,
  requiresApproval: false,
  enabled: true,
  off: null,
  ...more,
});

let tools: Tool[] = [];
let servers: Server[] = [];

beforeEach(() => {
  tools = [tool("calculator"), tool("current_time")];
  servers = [];
  server.get("/api/tool-connections", { connections: [], commands: [] });
  server.get("/api/tools", ({ query }) => {
    const words = query.get("search") ?? "";
    const origin = query.get("origin");
    const fits = tools.filter((one) => `${one.name} ${one.description}`.includes(words));
    const from = fits.filter((one) => origin === null || one.origin === origin);
    const begin = Number(query.get("after") ?? 0);
    const origins: Record<string, number> = {};
    for (const one of fits) origins[one.origin] = (origins[one.origin] ?? 0) + 1;
    return {
      tools: from.slice(begin, begin + PAGE),
      servers,
      origins,
      next: from.length > begin + PAGE ? String(begin + PAGE) : null,
    };
  });
  server.get("/api/tools/{name}", ({ at }) => {
    const found = tools.find((one) => one.name === at.name);
    return found ?? refusal(404, "unknown-tool", `there is no tool '${at.name}'`);
  });
});

describe("tool pages", () => {
  it("show the parameters of a tool and call it once", async () => {
    server.post("/api/tools/{name}/try", { ok: true, result: 42, failure: null });
    const { user } = await open("/tools");
    await fill(user, await screen.findByLabelText("Search tools"), "calculator");
    await waitFor(() => expect(rows("Built-in")).toHaveLength(2));
    await user.click(within(screen.getByRole("table", { name: "Built-in" })).getByRole("link", { name: "calculator" }));
    await screen.findByRole("heading", { name: "calculator" });
    const takes = within(await screen.findByRole("table", { name: "Arguments" }));
    expect(takes.getByRole("row", { name: /expression/ }).textContent).toContain("required");
    await fill(user, await screen.findByLabelText(/expression/), "6 * 7");
    await user.click(screen.getByRole("button", { name: "Run" }));
    await screen.findByText(/Result/);
    await screen.findByText("42");
    expect(server.bodiesTo("post", "/api/tools/{name}/try")).toEqual([{ arguments: { expression: "6 * 7" } }]);
  });

  it("show the error of a tool", async () => {
    const failure = { code: "tool-failed", message: "6 * is no expression", hint: "" };
    server.post("/api/tools/{name}/try", { ok: false, result: null, failure });
    const { user } = await open("/tools/calculator");
    await fill(user, await screen.findByLabelText(/expression/), "6 *");
    await user.click(screen.getByRole("button", { name: "Run" }));
    await screen.findByText(/Failed:/);
    await screen.findByText(/6 \* is no expression/);
  });

  it("explain to viewers why they cannot try a tool", async () => {
    server.get("/api/me", keyed("vera", "viewer"));
    await open("/tools/calculator");
    await screen.findByText(/Only workflows can call this tool: it requires the editor role/);
    expect(screen.queryByRole("button", { name: "Run" })).toBeNull();
  });

  it("report that a tool does not exist", async () => {
    await open("/tools/abacus");
    expect((await screen.findByRole("alert")).textContent).toContain("there is no tool 'abacus'");
  });

  it("show why an MCP server does not respond", async () => {
    const failure = { code: "mcp-unreachable", message: "/nowhere/server is not there", hint: "" };
    servers = [{ name: "files", prefix: "files_", tools: 0, failure }];
    server.get("/api/me", keyed("vera", "viewer"));
    await open("/tools");
    const table = within(await screen.findByRole("table", { name: "MCP servers" }));
    expect(table.getByRole("row", { name: /files/ }).textContent).toContain("mcp-unreachable");
  });

  it("mark the language of the reason why a tool is disabled", async () => {
    tools = [tool("web_search", { enabled: false, off: "Add a search engine to the settings." })];
    await open("/tools/web_search", { language: "de" });
    const told = await screen.findByText(/Auf diesem Server abgeschaltet\./);
    expect(told.querySelector("[lang=en]")?.textContent).toContain("settings");
  });

  it("show many tools page by page, by text and by origin", async () => {
    const lifts = Array.from({ length: 60 }, (_, at) =>
      tool(`lift_${at}`, { origin: "function", description: `Lifts crate ${at} out of the hold.` }),
    );
    tools = [...lifts, tool("calculator")];
    const { user } = await open("/tools");
    await screen.findByRole("table", { name: "Python" });
    expect(rows("Python")).toHaveLength(51);
    expect(screen.queryByRole("table", { name: "Built-in" })).toBeNull();
    await user.click(screen.getByRole("button", { name: "Show more" }));
    await waitFor(() => expect(rows("Python")).toHaveLength(61));
    await screen.findByRole("table", { name: "Built-in" });
    await user.click(screen.getByRole("button", { name: /Built-in/ }));
    await waitFor(() => expect(screen.queryByRole("table", { name: "Python" })).toBeNull());
    within(screen.getByRole("table", { name: "Built-in" })).getByRole("link", { name: "calculator" });
    await user.click(screen.getByRole("button", { name: /Built-in/ }));
    await fill(user, screen.getByLabelText("Search tools"), "crate 41");
    await waitFor(() => expect(rows("Python")).toHaveLength(2));
    within(screen.getByRole("table", { name: "Python" })).getByRole("link", { name: "lift_41" });
  });
});
