import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { open, server } from "@/testing/page";
import { refusal } from "@/testing/server";
import type { Publication } from "./publish";
import { sampleInput, snippet, widget } from "./snippets";

const DOCUMENT = {
  pointsman: 1,
  id: "greet",
  name: "Greeting",
  input: { type: "object", properties: { who: { type: "string" }, times: { type: "integer", default: 2 } } },
  nodes: [],
  edges: [],
};
const NONE: Publication = {
  published: false,
  form: false,
  chat: false,
  mcp: true,
  model: true,
  path: null,
  embedPath: null,
  chatPath: null,
  chatEmbedPath: null,
  title: "",
  text: "",
  thanks: "",
  greeting: "",
  suggestions: [],
  login: false,
  output: true,
  origins: [],
  changedAt: null,
  changedBy: "",
  etag: "",
};

describe("publishing", () => {
  let known: Publication;
  beforeEach(() => {
    known = NONE;
    server.get("/api/workflows/{id}", { document: DOCUMENT, revision: 1 } as never);
    server.get("/api/workflows/{id}/publication", () => known);
    server.get("/api/chat/workflows", { workflows: [{ id: "greet" }], next: null } as never);
  });

  it("creates a link and the code of the widget, and withdraws them", async () => {
    const sent: unknown[] = [];
    server.put("/api/workflows/{id}/publication", ({ body }) => {
      sent.push(body);
      known = {
        ...NONE,
        published: true,
        form: true,
        path: "/form/tok",
        embedPath: "/embed/tok",
        changedAt: 1,
        etag: '"2"',
      };
      return known;
    });
    server.delete("/api/workflows/{id}/publication", () => {
      known = NONE;
      return undefined;
    });
    const { user } = await open("/workflows/greet/publish");
    await user.type(await screen.findByLabelText("Text"), "Who are you?");
    await user.type(screen.getByLabelText(/^Sites/), "https://www.example.com");
    await user.click(screen.getByRole("button", { name: "Publish" }));
    await screen.findByRole("link", { name: /\/form\/tok$/ });
    await screen.findByText(/<script src=.*embed\.js" data-form="tok"/);
    expect(sent).toEqual([
      {
        form: true,
        chat: false,
        mcp: true,
        model: true,
        title: "",
        text: "Who are you?",
        thanks: "",
        greeting: "",
        suggestions: [],
        login: false,
        output: true,
        origins: ["https://www.example.com"],
        newLink: false,
      },
    ]);
    await user.click(screen.getByRole("button", { name: "Unpublish" }));
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Unpublish" }));
    await screen.findByRole("button", { name: "Publish" });
    expect(screen.queryByRole("link", { name: /form/ })).toBeNull();
  });

  it("publishes a chat and withdraws the offers to programs with one save", async () => {
    const sent: unknown[] = [];
    server.put("/api/workflows/{id}/publication", ({ body }) => {
      sent.push(body);
      known = { ...NONE, published: true, chat: true, mcp: false, chatPath: "/talk/tok", changedAt: 1, etag: '"2"' };
      return known;
    });
    const { user } = await open("/workflows/greet/publish");
    await screen.findByText("workflow__greet");
    await user.click(screen.getByRole("checkbox", { name: "Form page" }));
    await user.click(await screen.findByRole("checkbox", { name: "Chat page" }));
    await user.type(screen.getByLabelText("Suggested messages"), "Who are you?");
    await user.click(screen.getByRole("checkbox", { name: "Offer as MCP tool" }));
    expect(screen.queryByText("workflow__greet")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Publish" }));
    await screen.findByRole("link", { name: /\/talk\/tok$/ });
    expect(sent).toMatchObject([{ form: false, chat: true, mcp: false, model: true, suggestions: ["Who are you?"] }]);
  });

  it("offers no chat for a workflow that a text cannot start", async () => {
    server.get("/api/chat/workflows", { workflows: [], next: null });
    await open("/workflows/greet/publish");
    expect(await screen.findByRole("checkbox", { name: "Chat page" })).toHaveProperty("disabled", true);
  });

  it("shows code for this workflow in three languages", async () => {
    const { user } = await open("/workflows/greet/publish");
    await screen.findByText(/curl .*\/api\/workflows\/greet\/execute/);
    await user.click(screen.getByRole("radio", { name: "Python" }));
    await screen.findByText(/from pointsman import sync/);
    await user.click(screen.getByRole("radio", { name: "TypeScript" }));
    await screen.findByText(/await fetch/);
  });
});

describe("code for programs", () => {
  it("has the fields of the input, and keeps strange names in quotes", () => {
    expect(sampleInput(DOCUMENT.input)).toEqual({ who: "", times: 2 });
    expect(sampleInput(null)).toEqual({});
    const curl = snippet("curl", "https://s", "it's", { who: "O'Neil" });
    expect(curl).toContain("/api/workflows/it's/execute");
    expect(curl).toContain(`"who":"O'\\''Neil"`);
    expect(widget("https://s", "/embed/tok", `A "b" <c>`)).toBe(
      '<script src="https://s/embed.js" data-form="tok" data-title="A &quot;b&quot; &lt;c>" async></script>',
    );
  });
});

describe("a published form", () => {
  const FORM = {
    title: "Say hello",
    text: "Who are you?",
    thanks: "Bye.",
    login: false,
    output: true,
    input: { type: "object", properties: { who: { type: "string", title: "Name" } }, required: ["who"] },
  };

  it("starts a run and shows its output, without the navigation of the app", async () => {
    server.get("/api/published/{token}", FORM);
    const sent: unknown[] = [];
    server.post("/api/published/{token}/runs", ({ body }) => {
      sent.push(body);
      return { run: "exec-1.sig" };
    });
    server.get("/api/published/{token}/runs/{run}", {
      status: "completed",
      waiting: false,
      output: { text: "Hello **Ann**" },
    });
    const { user } = await open("/form/tok");
    await screen.findByRole("heading", { name: "Say hello" });
    expect(screen.queryByRole("link", { name: "Workflows" })).toBeNull();
    await user.type(await screen.findByLabelText(/Name/), "Ann");
    await user.click(screen.getByRole("button", { name: "Send" }));
    await screen.findByText("Bye.");
    expect((await screen.findByText("Ann")).tagName).toBe("STRONG");
    expect(sent).toEqual([{ input: { who: "Ann" }, key: expect.any(String) }]);
  });

  it("states that it was withdrawn, or that it requires a login", async () => {
    server.get("/api/published/{token}", refusal(404, "not-published", "nothing"));
    await open("/embed/gone");
    await screen.findByText(/Nothing is published at this address/);
    await waitFor(() => expect(screen.queryByRole("link")).toBeNull());
  });

  it("leads to the login where one is required", async () => {
    server.get("/api/published/{token}", refusal(401, "not-signed-in", "no key"));
    await open("/form/tok");
    await screen.findByRole("link", { name: "Sign in" });
  });
});

describe("a published chat", () => {
  const PAGE = { title: "Ask us", text: "", greeting: "Good day.", suggestions: ["When do you open?"], login: false };

  it("shows greeting and suggestions, and continues the conversation of this tab", async () => {
    sessionStorage.setItem("talk tok", "visitor-1.sig");
    server.get("/api/published/{token}/chat", PAGE);
    server.get("/api/published/{token}/chat/{conversation}", {
      turns: [
        { message: "Hello", answer: "Hello **Ann**", status: "completed", waiting: false },
        { message: "And now?", answer: "", status: "running", waiting: true },
      ],
    });
    const { user } = await open("/talk/tok");
    await screen.findByText("Good day.");
    expect((await screen.findByText("Ann")).tagName).toBe("STRONG");
    await screen.findByText(/A person has to decide something/);
    await user.type(screen.getByRole("textbox", { name: "Message" }), "Hi");
    expect(screen.getByRole("button", { name: "Send" })).toHaveProperty("disabled", true);
    await user.click(screen.getByRole("button", { name: "New conversation" }));
    await screen.findByRole("button", { name: "When do you open?" });
    expect(sessionStorage.getItem("talk tok")).toBeNull();
  });

  it("works in a frame whose browser refuses storage", async () => {
    const storage = vi.spyOn(window, "sessionStorage", "get").mockImplementation(() => {
      throw new DOMException("denied", "SecurityError");
    });
    server.get("/api/published/{token}/chat", PAGE);
    await open("/embed/chat/tok");
    await screen.findByText("Good day.");
    storage.mockRestore();
  });

  it("states that it was withdrawn", async () => {
    server.get("/api/published/{token}/chat", refusal(404, "not-published", "nothing"));
    await open("/embed/chat/gone");
    await screen.findByText(/Nothing is published at this address/);
  });
});
