import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT } from "@/testing/answers";
import { dialog, fill, open, rows, server } from "@/testing/page";
import type { Delivery, Webhook } from "./webhooks";

const PAGE = 50;

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
