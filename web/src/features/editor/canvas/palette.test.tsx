import { screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { noModels, workflowEntry } from "@/testing/answers";
import { open, server } from "@/testing/page";
import { tagged } from "@/testing/server";

const DOCUMENT = {
  id: "chain",
  nodes: [{ id: "first", type: "agent", config: { prompt: "one" } }],
  edges: [],
};

beforeEach(() => {
  localStorage.clear();
  server.get("/api/models", noModels);
  server.get("/api/agents", { agents: [], next: null });
  server.get("/api/tools", ({ query }) => {
    const all = [{ name: "web_search", description: "Search the web." }];
    return { tools: all.filter((one) => one.name.includes(query.get("search") ?? "")), next: null } as never;
  });
  server.get("/api/workflows", { workflows: [], next: null } as never);
  server.get("/api/workflows/schema", { type: "object", properties: {}, $defs: {} } as never);
  server.get("/api/workflows/{id}", ({ query }) => {
    const one = {
      ...workflowEntry("chain", { revision: 1, etag: '"1"' }),
      ...{ document: DOCUMENT, text: "", problems: [] },
    };
    return (query.has("dialect") ? { document: DOCUMENT, losses: [] } : tagged(one, one.etag)) as never;
  });
  server.get("/api/workflows/{id}/versions", { workflows: [], next: null } as never);
  server.post("/api/workflows/{id}/edit", { document: DOCUMENT, problems: [] } as never);
});

describe("the palette", () => {
  it("has the node types in groups with headings", async () => {
    await open("/workflows/chain");
    const palette = within(await screen.findByRole("toolbar", { name: "Node palette" }));
    const flow = within(palette.getByRole("group", { name: "Flow" }));
    expect(flow.getAllByRole("button").map((one) => one.textContent?.trim())).toContain("Decision");
    expect(within(palette.getByRole("group", { name: "On the canvas" })).getAllByRole("button")).toHaveLength(2);
  });

  it("finds node types and tools of the server by a few letters, and adds the first with Enter", async () => {
    const { user } = await open("/workflows/chain");
    const search = await screen.findByRole("searchbox", { name: "Search to add" });
    await user.type(search, "web_s");
    const palette = within(screen.getByRole("toolbar", { name: "Node palette" }));
    await palette.findByRole("button", { name: "web_search" });
    await user.keyboard("{Enter}");
    expect(await screen.findByText("1 unsaved change", { exact: false })).toBeTruthy();
    await user.clear(search);
    await user.type(search, "{ArrowDown}");
    expect(document.activeElement?.textContent?.trim()).toBe("Agent");
  });

  it("says when nothing matches", async () => {
    const { user } = await open("/workflows/chain");
    await user.type(await screen.findByRole("searchbox", { name: "Search to add" }), "zzzz");
    expect(await screen.findByText("No results for “zzzz”.")).toBeTruthy();
  });
});
