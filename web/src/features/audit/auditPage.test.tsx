import { fireEvent, screen, waitFor } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import type { Schemas } from "@/api/views";
import { AT } from "@/testing/answers";
import { fill, open, rows, server } from "@/testing/page";

const entry = (id: string, what: string, target: string, refused: string | null = null): Schemas["AuditEntryView"] => ({
  id,
  at: AT,
  who: "local",
  entrance: "local",
  what,
  target,
  origin: "",
  refused,
});
const ENTRIES = [
  entry("3", "DELETE /api/workflows/{id}", "nope", "unknown-workflow"),
  entry("2", "POST /api/workflows/{id}/execute", "exec-1"),
  entry("1", "POST /api/workflows", "chain"),
];

beforeEach(() => {
  server.get("/api/audit", ({ query }) => {
    const entries = query.has("since") ? [] : ENTRIES.filter((one) => one.target.includes(query.get("what") ?? ""));
    return { entries, deeds: entries, next: null };
  });
  server.get("/api/audit/state", { rows: 4, hash: "abc", damage: [] });
});

describe("audit page", () => {
  it("filters entries by target and day, and offers a download", async () => {
    const { user, address } = await open("/audit");
    await screen.findByText("Integrity verified (4 entries)");
    await screen.findByText("refused: unknown-workflow");
    await fill(user, screen.getByLabelText("Operation"), "exec-1");
    await user.click(screen.getByRole("button", { name: "Search" }));
    await waitFor(() => expect(address()).toBe("/audit?what=exec-1"));
    await waitFor(() => expect(rows("Audit log")).toHaveLength(2));
    expect(rows("Audit log")[1]?.textContent).toContain("POST /api/workflows/{id}/execute");
    await user.click(screen.getByRole("button", { name: "Clear" }));
    await waitFor(() => expect(rows("Audit log")).toHaveLength(4));
    fireEvent.change(screen.getByLabelText("From"), { target: { value: "2001-01-01" } });
    fireEvent.change(screen.getByLabelText("To"), { target: { value: "2001-12-31" } });
    await user.click(screen.getByRole("button", { name: "Search" }));
    await screen.findByText("No matching entries.");
    const asked = server.requestsTo("get", "/api/audit").at(-1)?.query;
    expect(Number(asked?.get("since"))).toBe(new Date("2001-01-01T00:00:00").getTime() / 1000);
    const file = screen.getByRole("link", { name: "Export as JSONL" });
    expect([file.getAttribute("href"), file.getAttribute("download")]).toEqual(["/api/audit/export", "audit.jsonl"]);
  });

  it("reports a modified log", async () => {
    server.get("/api/audit/state", { rows: 1, hash: "abc", damage: ["row 0 was changed"] });
    await open("/audit", { language: "de" });
    expect((await screen.findByRole("alert")).textContent).toContain("Prüfung fehlgeschlagen: Die Kette ist gebrochen");
  });
});
