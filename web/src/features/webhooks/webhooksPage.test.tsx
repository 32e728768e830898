import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { Json } from "@/api/views";
import { AT, workflowEntry } from "@/testing/answers";
import { dialog, fill, noDialog, open, rows, server } from "@/testing/page";
import { refusal } from "@/testing/server";
import type { Delivery, Webhook } from "./webhooks";

const PAGE = 50;
const DAILY = { id: "daily", type: "schedule", cron: "0 8 * * *" };

const webhook = (path: string): Webhook => ({
  path,
  address: `/api/webhooks/${path}`,
  workflowId: path.split("/")[1] ?? path,
  trigger: "call",
  event: null,
  signed: false,
  scheme: "standard",
  stopped: null,
});

const delivery = (id: string, more: Partial<Delivery>): Delivery => ({
  id,
  at: AT,
  bytes: 10,
  outcome: "started",
  signed: false,
  code: null,
  why: null,
  hint: null,
  executionId: null,
  delivered: 0,
  ...more,
});

const defined = (triggers: Json[], more: object = {}) => ({
  document: { id: "letter", nodes: [], edges: [], triggers },
  graph: null,
  losses: [],
  revision: 2,
  published: null,
  ...more,
});
/** An older version is published. */
const OLDER = { published: { revision: 1, name: "1.0", note: "", namedAt: AT, namedBy: "ann" } };
const generated = { hosts: [], tools: [], workflows: ["orders"], groups: [] };
const vault = (name: string, uses: string[]) => {
  const secret = { name, changedAt: AT, changedBy: "ann", stored: true, credential: null, ...generated, etag: '"7"' };
  server.get("/api/secrets", { secrets: [secret], elsewhere: [], next: null });
  server.get("/api/secrets/{name}/uses", { workflows: uses, agents: [], settings: [] });
  server.delete("/api/secrets/{name}", () => undefined);
};

let kept: Webhook[] = [];

beforeEach(() => {
  kept = [webhook("shop/orders")];
  server.get("/api/webhooks", ({ query }) => {
    const fits = kept.filter((one) => one.path.includes(query.get("search") ?? ""));
    const begin = Number(query.get("after") ?? 0);
    return { webhooks: fits.slice(begin, begin + PAGE), next: fits.length > begin + PAGE ? String(PAGE) : null };
  });
});

describe("webhooks page", () => {
  it("reports that there are no webhooks", async () => {
    kept = [];
    await open("/webhooks");
    await screen.findByText("No webhooks yet.");
  });

  it("shows the address of a webhook and sends a test call", async () => {
    server.post("/api/workflows/{id}/triggers/{trigger}/try", ({ body }) => ({
      delivery: "d1",
      accepted: body.data.order > 0,
      started: body.data.order > 0 ? "exec-1" : null,
      delivered: [],
    }));
    const { user } = await open("/webhooks");
    await screen.findByText(`${window.location.origin}/api/webhooks/shop/orders`);
    expect(screen.queryByRole("searchbox")).toBeNull();
    await user.click(screen.getByRole("button", { name: "Test shop/orders" }));
    const form = await dialog();
    await fill(user, form.getByLabelText("Request body (JSON)"), '{"order": 0}');
    await user.click(form.getByRole("button", { name: "Send test call" }));
    await form.findByText(/Ignored/);
    await fill(user, form.getByLabelText("Request body (JSON)"), '{"order": 7}');
    await user.click(form.getByRole("button", { name: "Send test call" }));
    const link = await form.findByRole("link", { name: "Open execution" });
    expect(link.getAttribute("href")).toBe("/executions/exec-1");
    const [first, second] = server.requestsTo("post", "/api/workflows/{id}/triggers/{trigger}/try");
    expect(first?.at).toEqual({ id: "orders", trigger: "call" });
    expect([first?.body, second?.body]).toEqual([{ data: { order: 0 } }, { data: { order: 7 } }]);
  });

  it("shows the outcomes of calls", async () => {
    let deliveries: Delivery[] = [];
    server.get("/api/workflows/{id}/triggers/{trigger}/deliveries", () => ({ deliveries }));
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Recent calls of shop/orders" }));
    const shown = await dialog();
    await shown.findByText(/No calls yet/);
    deliveries = [
      delivery("3", { outcome: "failed", code: "invalid-body", why: "the body is not JSON", hint: "Send UTF-8" }),
      delivery("2", { executionId: "exec-1" }),
      delivery("1", { outcome: "ignored" }),
    ];
    await user.click(shown.getByRole("button", { name: "Refresh" }));
    await shown.findByRole("table", { name: "Recent calls" });
    const found = rows("Recent calls") as [HTMLElement, HTMLElement, HTMLElement, HTMLElement];
    expect(found).toHaveLength(4);
    expect(found[1].textContent).toContain("the body is not JSON");
    expect(found[1].textContent).toContain("Send UTF-8");
    expect(found[3].textContent).toContain("ignored");
    const link = within(found[2]).getByRole("link", { name: "Open execution" });
    expect(link.getAttribute("href")).toBe("/executions/exec-1");
  });

  it("adds a webhook to a workflow, with a secret that is shown once", async () => {
    server.get("/api/workflows", { workflows: [workflowEntry("letter", { name: "Letter" })], next: null });
    server.get("/api/workflows/{id}", defined([DAILY], OLDER));
    server.put("/api/secrets/{name}", ({ at }) =>
      at.name === "WEBHOOK_SHOP_ORDERS" ? refusal(412, "revision-moved", "it exists") : undefined,
    );
    server.post("/api/workflows/{id}/edit", {} as never);
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Create a webhook" }));
    const form = await dialog();
    await fill(user, form.getByRole("combobox", { name: /^Workflow/ }), "letter");
    await user.click(await form.findByRole("option", { name: /Letter/ }));
    await fill(user, form.getByLabelText(/^Path/), "shop/orders");
    await user.click(form.getByRole("button", { name: "Save" }));
    const shown = await dialog("Webhook shop/orders saved");
    await shown.findByText(/^Secret WEBHOOK_SHOP_ORDERS_2/);
    expect(shown.getByText(/^whsec_[A-Za-z0-9+/]{43}=$/)).toBeTruthy();
    await shown.findByText(/saved, but not in effect/);
    const [saved] = server.requestsTo("post", "/api/workflows/{id}/edit");
    const added = { id: "shop-orders", type: "webhook", path: "shop/orders", secret: "secret.WEBHOOK_SHOP_ORDERS_2" };
    expect(saved?.body).toEqual({
      operations: [{ op: "change_workflow", set: { "/triggers": [DAILY, added] } }],
      apply: true,
    });
  });

  it("forgets the secret of a webhook that the server refuses", async () => {
    server.get("/api/workflows", { workflows: [workflowEntry("letter", { name: "Letter" })], next: null });
    server.get("/api/workflows/{id}", defined([]));
    server.put("/api/secrets/{name}", () => undefined);
    server.delete("/api/secrets/{name}", () => undefined);
    server.post("/api/workflows/{id}/edit", () => refusal(422, "workflow-invalid", "two triggers have the path"));
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Create a webhook" }));
    const form = await dialog();
    await fill(user, form.getByRole("combobox", { name: /^Workflow/ }), "letter");
    await user.click(await form.findByRole("option", { name: /Letter/ }));
    await user.click(form.getByRole("button", { name: "Save" }));
    await form.findByText(/two triggers have the path/);
    expect(server.requestsTo("delete", "/api/secrets/{name}").map((one) => one.at.name)).toEqual(["WEBHOOK_LETTER"]);
  });

  it("changes what the form shows of a webhook, and deletes a webhook", async () => {
    const call = { id: "call", type: "webhook", path: "shop/orders", auth: "none", inputs: { order: "event.order" } };
    server.get("/api/workflows/{id}", defined([DAILY, call]));
    server.post("/api/workflows/{id}/edit", {} as never);
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    const form = await dialog("Edit webhook shop/orders");
    await user.selectOptions(form.getByLabelText("Signature"), "github");
    await user.click(form.getByRole("checkbox", { name: /Generate/ }));
    await user.click(form.getByRole("checkbox", { name: /Generate/ }));
    await fill(user, form.getByLabelText(/^Secret/), "SHOP");
    await fill(user, form.getByLabelText("Condition"), "event.order > 3");
    await user.click(form.getByRole("button", { name: "Save" }));
    await noDialog();
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete webhook" }));
    const asked = await dialog("Delete the webhook shop/orders?");
    await user.click(asked.getByRole("button", { name: "Delete webhook" }));
    await noDialog();
    const { auth: _auth, ...others } = call;
    const changed = { ...others, match: "event.order > 3", secret: "secret.SHOP", scheme: "github" };
    expect(
      server.requestsTo("post", "/api/workflows/{id}/edit").map(({ body }) => body.operations[0].set["/triggers"]),
    ).toEqual([[DAILY, changed], [DAILY]]);
  });

  it("maps the input of the executions that a call starts, and shows errors at their fields", async () => {
    const call = { id: "call", type: "webhook", path: "shop/orders", auth: "none", inputs: { order: "event.order" } };
    const wrong = { code: "expression-syntax", severity: "error", message: "expected a value", hint: "Complete it." };
    server.get("/api/workflows/{id}", defined([DAILY, call]));
    let isRefused = true;
    server.post("/api/workflows/{id}/edit", () =>
      isRefused
        ? refusal(422, "workflow-invalid", "expected a value (and 1 more)", {
            problems: [
              { ...wrong, pointer: "/triggers/1/inputs/title" },
              { ...wrong, pointer: "/triggers/1/match", message: "expected a key" },
            ],
          })
        : ({} as never),
    );
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    const form = await dialog("Edit webhook shop/orders");
    expect((form.getByLabelText("Expression of input 1") as HTMLInputElement).value).toBe("event.order");
    await user.click(form.getByRole("button", { name: "Add input" }));
    await fill(user, form.getByLabelText("Name of input 2"), "order");
    await fill(user, form.getByLabelText("Expression of input 2"), "event.");
    expect(form.getAllByText("Another input has this name.")).toHaveLength(2);
    expect((form.getByRole("button", { name: "Save" }) as HTMLButtonElement).disabled).toBe(true);
    await fill(user, form.getByLabelText("Name of input 2"), "title");
    await user.click(form.getByRole("button", { name: "Save" }));
    await form.findByText("expected a value Complete it.");
    expect(form.getByLabelText("Condition").getAttribute("aria-invalid")).toBe("true");
    expect(document.activeElement).toBe(form.getByLabelText("Expression of input 2"));
    expect(form.queryByText(/and 1 more/)).toBeNull();
    isRefused = false;
    await fill(user, form.getByLabelText("Expression of input 2"), "event.title");
    await user.click(form.getByRole("button", { name: "Remove input 1" }));
    await user.click(form.getByRole("button", { name: "Save" }));
    await noDialog();
    const [, saved] = server.requestsTo("post", "/api/workflows/{id}/edit");
    expect(saved?.body.operations[0].set["/triggers"][1]).toEqual({ ...call, inputs: { title: "event.title" } });
  });

  it("shows at the path that another webhook has it", async () => {
    const call = { id: "call", type: "webhook", path: "shop/orders", auth: "none" };
    server.get("/api/workflows/{id}", defined([call]));
    server.post("/api/workflows/{id}/edit", () =>
      refusal(409, "webhook-taken", "the path belongs to another workflow"),
    );
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    const form = await dialog("Edit webhook shop/orders");
    await user.click(form.getByRole("button", { name: "Save" }));
    await form.findByText("the path belongs to another workflow");
    expect(form.getByLabelText(/^Path/).getAttribute("aria-invalid")).toBe("true");
  });

  it("states after a change and a deletion that an older published version is in effect", async () => {
    const call = { id: "call", type: "webhook", path: "shop/orders", auth: "none" };
    server.get("/api/workflows/{id}", defined([call], OLDER));
    server.post("/api/workflows/{id}/edit", {} as never);
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    await user.click((await dialog()).getByRole("button", { name: "Save" }));
    const saved = await dialog("Webhook shop/orders saved");
    await saved.findByText(/The change is saved, but not in effect.*“1.0”/);
    await user.click(saved.getByRole("button", { name: "Close" }));
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete webhook" }));
    const asked = await dialog("Delete the webhook shop/orders?");
    await user.click(asked.getByRole("button", { name: "Delete webhook" }));
    await (await dialog("Webhook shop/orders deleted")).findByText(/calls are still accepted/);
  });

  it("deletes the generated secret of a deleted webhook", async () => {
    const call = { id: "call", type: "webhook", path: "shop/orders", secret: "secret.WEBHOOK_SHOP_ORDERS" };
    server.get("/api/workflows/{id}", defined([call]));
    server.post("/api/workflows/{id}/edit", {} as never);
    vault("WEBHOOK_SHOP_ORDERS", []);
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete webhook" }));
    const asked = await dialog("Delete the webhook shop/orders?");
    await user.click(asked.getByRole("button", { name: "Delete webhook" }));
    await (await dialog("Webhook shop/orders deleted")).findByText(/WEBHOOK_SHOP_ORDERS was deleted/);
    const [gone] = server.requestsTo("delete", "/api/secrets/{name}");
    expect([gone?.at.name, gone?.headers.get("if-match")]).toEqual(["WEBHOOK_SHOP_ORDERS", '"7"']);
  });

  it.each([
    ["a secret that another workflow names", "WEBHOOK_SHOP_ORDERS", ["copy"], /another version or another workflow/],
    ["a secret that a person stored", "SHOP", [], null],
  ])("keeps %s when a webhook gets another secret", async (_, name, uses, note) => {
    const call = { id: "call", type: "webhook", path: "shop/orders", secret: `secret.${name}` };
    kept = [{ ...webhook("shop/orders"), signed: true }];
    server.get("/api/workflows/{id}", defined([call]));
    server.post("/api/workflows/{id}/edit", {} as never);
    vault(name, uses);
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    const form = await dialog("Edit webhook shop/orders");
    await fill(user, form.getByLabelText(/^Secret/), "OTHER");
    await user.click(form.getByRole("button", { name: "Save" }));
    if (note) await (await dialog("Webhook shop/orders saved")).findByText(note);
    else await noDialog();
    expect(server.requestsTo("delete", "/api/secrets/{name}")).toEqual([]);
  });

  it("does not edit a webhook that the newest revision no longer has", async () => {
    server.get("/api/workflows/{id}", defined([DAILY]));
    const { user } = await open("/webhooks");
    await user.click(await screen.findByRole("button", { name: "Edit webhook shop/orders" }));
    await (await dialog()).findByText(/does not have this webhook any more/);
    expect(screen.queryByRole("button", { name: "Save" })).toBeNull();
  });

  it("finds one of many by text, and shows all page by page", async () => {
    kept = Array.from({ length: 60 }, (_, at) => webhook(`shop/orders-${String(at).padStart(2, "0")}`));
    const { user } = await open("/webhooks");
    const search = await screen.findByRole("searchbox", { name: "Search webhooks" });
    expect(rows("Webhooks")).toHaveLength(51);
    await user.click(screen.getByRole("button", { name: "Show more" }));
    await waitFor(() => expect(rows("Webhooks")).toHaveLength(61));
    await fill(user, search, "59");
    await waitFor(() => expect(rows("Webhooks")).toHaveLength(2));
    expect(rows("Webhooks")[1]?.textContent).toContain("shop/orders-59");
    await fill(user, search, "nothing like it");
    await screen.findByText(/“nothing like it”/);
  });
});
