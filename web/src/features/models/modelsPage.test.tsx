import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, keyed, noModels } from "@/testing/answers";
import { open, server } from "@/testing/page";
import { refusal } from "@/testing/server";
import type { KeyProvider, ProviderKey } from "./keys";
import type { Model, Models } from "./models";

const model = (name: string, more: Partial<Model> = {}): Model => ({
  name,
  uses: ["default"],
  scripted: false,
  inputUsdPerMillion: null,
  outputUsdPerMillion: null,
  priceFrom: null,
  ...more,
});
const OWN: Models = {
  ...noModels,
  default: "own:m",
  models: [
    model("own:m"),
    model("own:dear", { uses: ["fallback"], inputUsdPerMillion: 3.5, outputUsdPerMillion: 7, priceFrom: "settings" }),
  ],
  providers: [
    {
      name: "own",
      kind: "openai",
      baseUrl: "http://127.0.0.1:1",
      keys: 2,
      masked: ["…6789", "…6789"],
      strategy: "fixed",
      interval: 0,
      source: "settings",
      missing: null,
      etag: "",
    },
  ],
};

const key = (id: string, calls: number): ProviderKey => ({
  id,
  name: null,
  condition: calls ? "spent" : "free",
  until: calls ? AT + 3_600 : null,
  why: null,
  open: 0,
  calls,
  usedAt: null,
  failed: null,
  failedAt: null,
  today: { calls, tokens: 0, costUsd: 0 },
  mostToday: { calls: 1, tokens: null, costUsd: null },
});
const provider = (...keys: ProviderKey[]): KeyProvider => ({
  name: "own",
  missing: null,
  strategy: "fixed",
  interval: 0,
  keyInterval: 0,
  concurrency: 2,
  callsMax: null,
  shared: false,
  waiting: 0,
  keys,
});

let calls = 0;

beforeEach(() => {
  calls = 0;
  server.get("/api/models", OWN);
  server.get("/api/models/kinds", { kinds: [] });
  server.get("/api/models/keys", () => ({
    providers: [provider(key("own/0", calls), key("own/1", 0))],
    at: AT,
    beginsAnew: AT + 3_600,
    shared: false,
  }));
});

describe("models page", () => {
  it("updates while it is open when a key is used up", async () => {
    await open("/models");
    const first = await screen.findByRole("row", { name: /own\/0/ });
    expect(first.textContent).toContain("free");
    expect(first.textContent).toContain("0 of 1 call");
    await screen.findByText(/2 concurrent calls per key/);
    calls = 1;
    await waitFor(() => expect(first.textContent).toContain("used up"));
    expect(first.textContent).toContain("1 of 1 call");
    expect(first.textContent).toContain("Raise “day” of the provider in the settings");
    expect(screen.getByRole("row", { name: /own\/1/ }).textContent).toContain("free");
  });

  it("shows the source of a price and how to set one", async () => {
    await open("/models");
    const dear = await screen.findByRole("row", { name: /own:dear/ });
    expect(dear.textContent).toContain("$3.50 in, $7.00 out");
    expect(dear.textContent).toContain("from the settings");
    expect(screen.getByRole("row", { name: /own:m/ }).textContent).toContain("unknown");
    await screen.findByText(/Set the price/);
    await screen.findByText(/"own:m" = \{input/);
    await screen.findByText(/genai-prices/);
  });

  it("hides keys from viewers", async () => {
    server.get("/api/me", keyed("vera", "viewer"));
    server.get("/api/models/keys", refusal(403, "forbidden", "a viewer may not see keys"));
    await open("/models");
    await screen.findByRole("row", { name: /own:dear/ });
    expect(screen.queryByRole("heading", { name: "API keys" })).toBeNull();
  });

  it("marks scripted models and checks whether models respond", async () => {
    server.get("/api/models", {
      ...noModels,
      default: "scripted",
      forEveryAgent: true,
      models: [model("scripted", { scripted: true })],
    });
    server.get("/api/models/keys", { providers: [], at: AT, beginsAnew: AT, shared: false });
    server.post("/api/models/ping", { models: [{ name: "scripted", ok: true, scripted: true, seconds: 0.1 }] });
    const { user } = await open("/models");
    await screen.findByText(/No AI model is connected/);
    await screen.findByText("No provider configured.");
    await user.click(screen.getByRole("button", { name: "Test connection" }));
    await within(screen.getByRole("row", { name: /scripted/ })).findByText(/answered in/);
  });
});
