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
});
