import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Schemas } from "@/api/views";
import { AT } from "@/testing/answers";
import { open, server } from "@/testing/page";

describe("notifications page", () => {
  it("sends a failed notification again", async () => {
    let notice: Schemas["NoticeView"] = {
      id: "exec-1/failed/desk",
      to: "desk",
      recipient: null,
      reminder: 0,
      event: "workflow.failed",
      executionId: "exec-1",
      state: "dead",
      at: AT,
      attempts: 8,
      due: null,
      error: "answered 500",
    };
    server.get("/api/notifications", ({ query }) => ({
      addresses: [],
      notices: (query.get("state") ?? notice.state) === notice.state ? [notice] : [],
      next: null,
    }));
    server.post("/api/notifications/{id}/retry", () => {
      notice = { ...notice, state: "pending", attempts: 0, error: null };
      return notice;
    });
    const { user } = await open("/notifications");
    await screen.findByText("No destinations.");
    const table = within(await screen.findByRole("table", { name: "Outbox" }));
    const row = table.getByRole("row", { name: /workflow\.failed/ });
    expect(row.textContent).toContain("answered 500");
    await user.click(within(row).getByRole("button", { name: "Resend workflow.failed to desk" }));
    await screen.findByText("pending", { selector: "td *" });
    await user.selectOptions(screen.getByLabelText("State"), "given up");
    await screen.findByText("The outbox is empty.");
  });

  it("tests, adds and deletes a destination, and leaves those of the settings alone", async () => {
    const own: Schemas["AddressView"] = {
      name: "alerts",
      source: "app",
      inUse: true,
      url: "https://chat.example.com/…",
      events: ["failed"],
      workflows: ["*"],
      signed: false,
      format: "slack",
      recipients: [],
      answerLinks: false,
      language: "",
      mailTo: [],
      changedAt: AT,
      changedBy: "ada",
      etag: '"1"',
    };
    const fixed = { ...own, name: "desk", source: "pointsman.toml", etag: "" };
    let found = [fixed];
    const sent: unknown[] = [];
    server.get("/api/notifications", () => ({ addresses: found, notices: [], next: null }));
    server.post("/api/notifications/addresses/{name}/test", { sent: false, error: "answered 403" });
    server.put("/api/notifications/addresses/{name}", ({ body }) => {
      sent.push(body);
      found = [fixed, own];
      return own;
    });
    server.delete("/api/notifications/addresses/{name}", () => {
      found = [fixed];
      return undefined;
    });
    const { user } = await open("/notifications");
    await screen.findByText("Set in pointsman.toml");
    await user.click(screen.getByRole("button", { name: "Add destination" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.type(dialog.getByLabelText(/^Name/), "alerts");
    await user.type(dialog.getByLabelText(/^Webhook address/), "https://chat.example.com/1");
    await user.click(dialog.getByRole("checkbox", { name: "gate opened" }));
    await user.click(dialog.getByRole("button", { name: "Send a test" }));
    await dialog.findByText("The test was not sent: answered 403");
    await user.click(dialog.getByRole("button", { name: "Save" }));
    await user.click(await screen.findByRole("button", { name: "Delete destination alerts" }));
    expect(sent).toMatchObject([{ format: "slack", url: "https://chat.example.com/1", events: ["failed"] }]);
    await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Delete" }));
    await screen.findByText("Set in pointsman.toml");
  });
});
