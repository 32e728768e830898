import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, keyed, noModels, READY } from "@/testing/answers";
import { open, server } from "@/testing/page";
import type { ProviderKind } from "./connections";
import type { Models } from "./models";

const kind = (name: string, more: Partial<ProviderKind> = {}): ProviderKind => ({
  kind: name,
  needsKey: true,
  needsAddress: false,
  takesAddress: true,
  takesRegion: false,
  installed: true,
  install: "",
  models: [],
  suggested: "",
  setBy: null,
  ...more,
});
const CONNECTED: Models = {
  ...noModels,
  default: "openai:gpt-5-mini",
  defaultFrom: "app",
  providers: [
    {
      name: "openai",
      kind: "openai",
      baseUrl: null,
      keys: 1,
      masked: ["secret.MODEL_KEY_OPENAI"],
      strategy: "fixed",
      interval: 0,
      source: "app",
      missing: null,
      etag: "",
    },
  ],
};
const KEY = "sk-canary-12345678";
const failure = { code: "model-unauthorized", message: "401 from the model", hint: "Set a key" };

let models: Models;

beforeEach(() => {
  models = noModels;
  server.get("/api/models", () => models);
  server.get("/api/models/keys", { providers: [], at: AT, beginsAnew: AT, shared: false });
  server.get("/api/models/kinds", {
    kinds: [
      kind("openai", { models: ["gpt-5-mini", "gpt-5"], suggested: "gpt-5-mini" }),
      kind("groq", { setBy: "GROQ_API_KEY" }),
      kind("ollama", { needsKey: false, needsAddress: true }),
      kind("mistral", { installed: false, install: "pip install 'pointsman[mistral]'" }),
    ],
  });
});

describe("connecting a model", () => {
  it("takes two clicks and a paste, and shows the model as the default", async () => {
    const sent: unknown[] = [];
    server.put("/api/models/providers/{name}", ({ body }) => {
      sent.push(body);
      models = CONNECTED;
      return { saved: true, ping: { name: "openai:gpt-5-mini", ok: true, seconds: 0.4 }, default: "openai:gpt-5-mini" };
    });
    const { user } = await open("/models");
    await user.click(await screen.findByRole("button", { name: "Connect OpenAI" }));
    await user.type(screen.getByLabelText(/API key/), KEY);
    await user.click(screen.getByRole("button", { name: "Test and save" }));
    await screen.findByText("connected");
    expect(sent).toEqual([
      expect.objectContaining({ kind: "openai", key: KEY, model: "gpt-5-mini", default: true, test: true }),
    ]);
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(document.body.textContent).not.toContain(KEY);
  });

  it("explains a failed test, keeps what was entered, and can save without a test", async () => {
    const tests: boolean[] = [];
    server.put("/api/models/providers/{name}", ({ body }) => {
      const { test } = body as { test: boolean };
      tests.push(test);
      return { saved: !test, ping: test ? { name: "openai:m", ok: false, failure } : null, default: null };
    });
    const { user } = await open("/models");
    await user.click(await screen.findByRole("button", { name: "Connect OpenAI" }));
    await user.type(screen.getByLabelText(/API key/), KEY);
    await user.click(screen.getByRole("button", { name: "Test and save" }));
    const alert = await screen.findByRole("alert");
    expect(alert.textContent).toContain("Nothing was saved");
    expect(alert.textContent).toContain("Check that it was copied completely");
    expect(screen.getByLabelText<HTMLInputElement>(/API key/).value).toBe(KEY);
    await user.click(screen.getByRole("button", { name: "Save without test" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(tests).toEqual([true, false]);
  });

  it("shows what the environment sets and what is not installed, without a button", async () => {
    await open("/models");
    await screen.findByText("Groq");
    const card = (name: string) => screen.getByText(name).closest("li") as HTMLElement;
    expect(card("Groq").textContent).toContain("Set by GROQ_API_KEY");
    expect(card("Mistral").textContent).toContain("pip install 'pointsman[mistral]'");
    expect(within(card("Groq")).queryByRole("button")).toBeNull();
    expect(within(card("Mistral")).queryByRole("button")).toBeNull();
  });

  it("requires an address of a service on this network", async () => {
    const { user } = await open("/models");
    await user.click(await screen.findByRole("button", { name: "Connect Ollama" }));
    const button = screen.getByRole<HTMLButtonElement>("button", { name: "Test and save" });
    const dialog = within(screen.getByRole("dialog"));
    await user.type(dialog.getByLabelText(/^Model/), "llama3");
    expect(button.disabled).toBe(true);
    await user.type(screen.getByLabelText(/^Address/), "http://127.0.0.1:11434/v1");
    expect(button.disabled).toBe(false);
  });

  it("chooses another default model, and disconnects", async () => {
    models = CONNECTED;
    const chosen: unknown[] = [];
    server.put("/api/models/default", ({ body }) => {
      chosen.push(body);
      return undefined;
    });
    server.delete("/api/models/providers/{name}", () => {
      models = noModels;
      return undefined;
    });
    const { user } = await open("/models");
    const field = await screen.findByLabelText("Model");
    await user.clear(field);
    await user.type(field, "openai:gpt-5");
    await user.click(screen.getByRole("button", { name: "Use" }));
    await waitFor(() => expect(chosen).toEqual([{ model: "openai:gpt-5" }]));
    await user.click(screen.getByRole("button", { name: "Disconnect openai" }));
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Disconnect" }));
    await screen.findByRole("button", { name: "Connect OpenAI" });
  });

  it("shows a default model of the settings as theirs", async () => {
    models = { ...noModels, default: "own:m", defaultFrom: "/etc/pointsman.toml" };
    await open("/models");
    await screen.findByText(/set by \/etc\/pointsman\.toml/);
    expect(screen.queryByRole("button", { name: "Use" })).toBeNull();
  });

  it("is announced on every page of a scripted server", async () => {
    server.get("/ready", { ...READY, model: "scripted" });
    await open("/inbox");
    await screen.findByRole("link", { name: "Connect a model" });
  });

  it("is offered to admins only", async () => {
    server.get("/ready", { ...READY, model: "scripted" });
    server.get("/api/me", keyed("vera", "viewer"));
    await open("/models");
    await screen.findByText(/Ask an admin to connect a model/);
    await screen.findByText("No provider configured.");
    expect(screen.queryByRole("button", { name: "Connect OpenAI" })).toBeNull();
  });
});
