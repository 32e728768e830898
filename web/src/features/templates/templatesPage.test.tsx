import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { fill, main, open, server } from "@/testing/page";
import { useFirstSteps } from "./firstSteps";
import type { TemplateDetail } from "./templates";

function template(id: string, name: string, tags: string[]): TemplateDetail {
  return {
    id,
    name: { en: name, de: `${name} (deutsch)` },
    description: { en: `About ${name}.`, de: `Über ${name}.` },
    tags,
    needs: [],
    page: `/docs/cookbook/${id}/`,
    entry: "draft",
    nodes: [
      { id: "draft", type: "agent", name: null },
      { id: "review", type: "human", name: { en: "Review" } },
    ],
    edges: [{ source: "draft", target: "review" }],
    graph: { regions: [], implied: [] },
    text: `pointsman: 1\nid: ${id}\n`,
    script: "rules: []\n",
    input: { topic: "tides" },
    inputSchema: { type: "object", properties: { topic: { type: "string", title: "Topic" } } },
  };
}

const LETTER = template("letter", "Write a letter", ["text"]);
const TRIAGE = template("triage", "Sort requests", ["triage", "people"]);

beforeEach(() => {
  useFirstSteps.setState({ reached: new Set() });
  server.get("/api/templates", { templates: [LETTER, TRIAGE] });
  server.get("/api/templates/{name}", ({ at }) => (at.name === "triage" ? TRIAGE : LETTER));
});

describe("template gallery", () => {
  it("is searched by text and filtered by tag, which the address stores", async () => {
    const { user, address } = await open("/templates");
    await screen.findByRole("link", { name: "Write a letter" });
    screen.getByText("2 templates");
    await user.click(screen.getByRole("button", { name: "people" }));
    await screen.findByText("1 template");
    expect(address()).toBe("/templates?tag=people");
    expect(screen.queryByRole("link", { name: "Write a letter" })).toBeNull();
    await fill(user, screen.getByRole("searchbox", { name: "Search" }), "letter");
    await screen.findByText("No templates match.");
  });

  it("tries a template with its sample input and shows path, gates and output", async () => {
    server.post("/api/templates/{name}/try", {
      dryRun: true,
      workflowId: "letter",
      status: "completed",
      output: { letter: "Dear Ada" },
      path: ["draft", "review"],
      steps: 2,
      waits: [{ nodeId: "review", kind: "gate", event: null, answered: "approve" }],
      calls: [],
      cost: { lowUsd: 0, highUsd: 0, unpriced: [] },
      assumptions: { charsPerToken: 4, outputTokensPerAnswer: 300 },
      errors: [],
      warnings: [],
    });
    const { user } = await open("/templates/letter");
    const field = await screen.findByRole("textbox", { name: /Topic/ });
    expect((field as HTMLInputElement).value).toBe("tides");
    await user.click(screen.getByRole("button", { name: "Try it" }));
    const path = await screen.findByRole("list", { name: "Path" });
    expect(
      within(path)
        .getAllByRole("listitem")
        .map((one) => one.textContent),
    ).toEqual(["draft", "Review"]);
    screen.getByText("“Review” was answered with “approve”.");
    expect(main().getByText(/Dear Ada/)).toBeTruthy();
    expect(server.bodiesTo("post", "/api/templates/{name}/try")).toEqual([{ input: { topic: "tides" } }]);
    expect([...useFirstSteps.getState().reached]).toEqual(["try"]);
  });

  it("copies a template and opens the copy", async () => {
    server.post("/api/templates/{name}/use", { id: "letter-2", revision: 1, digest: "d1" });
    server.get("/api/workflows/{id}", () => new Promise<never>(() => undefined));
    const { user, address } = await open("/templates/letter");
    await user.click(await screen.findByRole("button", { name: "Use template" }));
    await waitFor(() => expect(address()).toBe("/workflows/letter-2"));
  });
});

describe("first steps", () => {
  it("lead to the templates, and stay closed", async () => {
    const { user } = await open("/workflows");
    const tour = within(await screen.findByRole("region", { name: "First steps" }));
    expect(tour.getAllByRole("listitem")[0]?.getAttribute("aria-current")).toBe("step");
    expect(tour.getByRole("link", { name: "Open the templates" }).getAttribute("href")).toBe("/templates");
    await user.click(tour.getByRole("button", { name: "Close the first steps" }));
    expect(screen.queryByRole("region", { name: "First steps" })).toBeNull();
    expect(localStorage.getItem("pointsman.firstSteps")).toBe("closed");
  });
});
