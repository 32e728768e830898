import { render, screen, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { noModels, noTools, workflowEntry } from "@/testing/answers";
import { open, server } from "@/testing/page";
import { tagged } from "@/testing/server";
import { initialsOf } from "./PresentPeople";

const DOCUMENT = {
  id: "letter",
  nodes: [{ id: "write", type: "agent", name: "Draft it", config: { prompt: "one" } }],
  edges: [],
};

beforeEach(() => {
  server.get("/api/models", noModels);
  server.get("/api/tools", noTools);
  server.get("/api/agents", { agents: [], next: null });
  server.get("/api/workflows/schema", { type: "object", properties: {}, $defs: {} } as never);
  server.get("/api/workflows/{id}/versions", { workflows: [], next: null } as never);
  server.post("/api/workflows/{id}/edit", { document: DOCUMENT, problems: [] } as never);
  server.get("/api/workflows/{id}", ({ query }) => {
    const one = {
      ...workflowEntry("letter", { revision: 1, etag: '"1"' }),
      ...{ document: DOCUMENT, text: "", problems: [] },
    };
    return (query.has("dialect") ? { document: DOCUMENT, losses: [] } : tagged(one, one.etag)) as never;
  });
});

describe("people who look at a workflow", () => {
  it("are shown by initials, with the node that each has selected", async () => {
    const people = [
      { name: "ada.lovelace", place: "write", at: 1 },
      { name: "ben", place: null, at: 1 },
    ];
    server.post("/api/presence", { people });
    await open("/workflows/letter");
    const list = within(await screen.findByRole("list", { name: "Also here" }));
    await list.findByText("AL");
    expect(list.getAllByRole("listitem").map((one) => one.title)).toEqual([
      "ada.lovelace is looking at Draft it",
      "ben is here",
    ]);
    expect(server.requestsTo("post", "/api/presence")[0]?.body).toEqual({
      ...{ kind: "workflow", subject: "letter", place: "" },
    });
  });

  it("have initials whatever their names are", () => {
    render(<p>{initialsOf("jo@example.org")}</p>);
    expect(screen.getByText("JE")).toBeTruthy();
    expect([initialsOf(""), initialsOf("x"), initialsOf("Änne von Droste")]).toEqual(["", "X", "ÄV"]);
  });
});
