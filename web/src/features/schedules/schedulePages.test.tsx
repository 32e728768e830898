import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, workflowEntry } from "@/testing/answers";
import { dialog, fill, open, rows, server } from "@/testing/page";
import { refusal, tagged } from "@/testing/server";
import type { FiredTime, Schedule } from "./schedules";

const PAGE = 50;

const schedule = (id: string, more: Partial<Schedule> = {}): Schedule => ({
  id,
  workflowId: "letter",
  trigger: null,
  when: "every 90 minutes",
  cron: null,
  every: 5_400,
  at: null,
  timezone: "UTC",
  input: { goal: "maps" },
  missed: "once",
  overlap: "allow",
  paused: false,
  enabled: true,
  owner: "local",
  stopped: null,
  next: AT,
  queued: [],
  results: [],
  ...more,
});
const LETTER = { type: "object", required: ["goal"], properties: { goal: { type: "string" } } };

const ZONES = new Set([undefined, "UTC", "Europe/Berlin"]);

let kept: Schedule[] = [];
let version = 1;

const change = (id: string | undefined, more: Partial<Schedule>) => {
  kept = kept.map((one) => (one.id === id ? { ...one, ...more } : one));
  version += 1;
  return kept.find((one) => one.id === id) as Schedule;
};

beforeEach(() => {
  kept = [];
  version = 1;
  const letter = workflowEntry("letter", { name: "letter" });
  server.get("/api/workflows", { workflows: [letter], next: null });
  server.get("/api/workflows/{id}", ({ query }) =>
    query.has("dialect")
      ? { document: { id: "letter", input: LETTER, nodes: [], edges: [] }, losses: [], graph: null }
      : { ...letter, document: { id: "letter", input: LETTER }, text: "", problems: [] },
  );
  server.get("/api/schedules", ({ query }) => {
    const fits = kept.filter((one) => one.id.includes(query.get("search") ?? ""));
    const begin = Number(query.get("after") ?? 0);
    return { schedules: fits.slice(begin, begin + PAGE), next: fits.length > begin + PAGE ? String(PAGE) : null };
  });
  server.get("/api/schedules/{sid}", ({ at }) => {
    const found = kept.find((one) => one.id === at.sid);
    return found ? tagged(found, `"${version}"`) : refusal(404, "unknown-schedule", "there is no such schedule");
  });
  server.get("/api/schedules/{sid}/times", { times: [AT, AT + 60] });
  server.post("/api/schedules/times", ({ body }) =>
    body.cron?.startsWith("61") || !ZONES.has(body.timezone)
      ? refusal(422, "invalid-schedule", "61 is no minute, or this is no time zone")
      : { times: [1, 2, 3, 4, 5].map((day) => AT + day * 86_400) },
  );
  server.post("/api/schedules", ({ body }) => {
    const { workflow, ...more } = body;
    kept.push(schedule(body.id, { every: null, ...more, workflowId: workflow }));
    return kept.at(-1) as Schedule;
  });
  server.put("/api/schedules/{sid}", ({ at, body, headers }) => {
    if (headers.get("if-match") !== `"${version}"`)
      return refusal(412, "revision-moved", "schedule 'often' was changed since it was read");
    const { workflow: _, ...more } = body;
    return change(at.sid, more);
  });
  server.delete("/api/schedules/{sid}", () => {
    kept = [];
    return undefined;
  });
  server.post("/api/schedules/{sid}/pause", ({ at }) => change(at.sid, { paused: true }));
  server.post("/api/schedules/{sid}/resume", ({ at }) => change(at.sid, { paused: false }));
  server.post("/api/schedules/{sid}/run", ({ at }) => {
    const fired: FiredTime = {
      due: AT,
      at: AT,
      outcome: "started",
      executionId: "exec-1",
      count: 1,
      error: null,
      note: null,
    };
    change(at.sid, { results: [fired] });
    return fired;
  });
});

describe("schedule pages", () => {
  it("create a schedule and preview its next times", async () => {
    const { user, address } = await open("/schedules");
    await screen.findByText("No schedules yet.");
    await user.click(screen.getByRole("button", { name: "New schedule" }));
    const form = await dialog();
    await user.click(form.getByLabelText(/^Workflow/));
    await user.click(await screen.findByRole("option", { name: /letter/ }));
    await fill(user, form.getByLabelText(/^Name/), "morning");
    await fill(user, form.getByLabelText(/^Cron/), "61 8 * * *");
    await waitFor(() => expect(form.getByLabelText(/^Cron/).getAttribute("aria-invalid")).toBe("true"));
    await fill(user, form.getByLabelText(/^Cron/), "30 7 * * 1-5");
    await form.findByText(/at 07:30 from Monday to Friday/);
    await fill(user, form.getByLabelText(/^Time zone/), "Europe/Berlin");
    await form.findByRole("columnheader", { name: "Europe/Berlin" });
    expect(rows("Next runs")).toHaveLength(6);
    await user.selectOptions(form.getByLabelText("If the previous execution is still running"), "queue");
    await fill(user, await form.findByLabelText(/goal/), "tides");
    await user.click(form.getByRole("button", { name: "Save schedule" }));
    await waitFor(() => expect(address()).toBe("/schedules/morning"));
    await screen.findByText(/at 07:30 from Monday to Friday/);
    expect(server.bodiesTo("post", "/api/schedules")[0]).toMatchObject({
      id: "morning",
      workflow: "letter",
      cron: "30 7 * * 1-5",
      timezone: "Europe/Berlin",
      overlap: "queue",
      input: { goal: "tides" },
    });
  });

  it("pause, run, change and delete a schedule", async () => {
    kept = [schedule("often")];
    const { user, address } = await open("/schedules");
    await user.click(await screen.findByRole("button", { name: "Pause often" }));
    await screen.findByRole("button", { name: "Resume often" });
    await user.click(screen.getByRole("link", { name: "often" }));
    await user.click(await screen.findByRole("button", { name: "Run now" }));
    await within(await screen.findByRole("table", { name: "Last runs" })).findByText("started");
    await waitFor(() => expect(server.requestsTo("get", "/api/schedules/{sid}").length).toBeGreaterThan(1));
    await user.click(screen.getByRole("button", { name: "Edit" }));
    const form = await dialog();
    const every = form.getByRole("spinbutton", { name: "Every" });
    expect(every).toHaveProperty("value", "90");
    await user.selectOptions(form.getByLabelText("Unit"), "hours");
    await fill(user, every, "2");
    await user.click(form.getByRole("button", { name: "Save schedule" }));
    await screen.findByText(/every 2 hours/);
    expect(kept[0]).toMatchObject({ every: 7_200, paused: true });
    await user.click(screen.getByRole("button", { name: "Delete" }));
    await user.click((await dialog()).getByRole("button", { name: "Delete" }));
    await waitFor(() => expect(address()).toBe("/schedules"));
    expect(kept).toEqual([]);
  });

  it("reject a change if another user changed the schedule meanwhile", async () => {
    kept = [schedule("often")];
    const { user } = await open("/schedules/often");
    await user.click(await screen.findByRole("button", { name: "Edit" }));
    const form = await dialog();
    await fill(user, form.getByRole("spinbutton", { name: "Every" }), "5");
    change("often", { every: 60 });
    await user.click(form.getByRole("button", { name: "Save schedule" }));
    expect((await form.findByRole("alert")).textContent).toContain("was changed since it was read");
    expect(kept[0]?.every).toBe(60);
  });

  it("show a schedule that a document declares as read-only", async () => {
    const own = { trigger: "nightly", workflowId: "chain", cron: "0 3 * * *", every: null };
    kept = [schedule("chain.nightly", own)];
    const { user } = await open("/schedules", { language: "de" });
    await user.click(await screen.findByRole("link", { name: "chain / nightly" }));
    await screen.findByText(/jeden Tag um 03:00/);
    await screen.findByText(/Auslöser nightly/);
    expect(screen.queryByRole("button", { name: "Bearbeiten" })).toBeNull();
    screen.getByRole("button", { name: "Anhalten" });
  });

  it("show many schedules page by page, and find one by text", async () => {
    kept = Array.from({ length: 60 }, (_, at) => schedule(`daily-${String(at).padStart(2, "0")}`));
    const { user } = await open("/schedules");
    await screen.findByRole("button", { name: "Pause daily-49" });
    expect(screen.queryByRole("button", { name: "Pause daily-50" })).toBeNull();
    await user.click(screen.getByRole("button", { name: "Show more" }));
    await waitFor(() => expect(rows("Schedules")).toHaveLength(61));
    expect(screen.queryByRole("button", { name: "Show more" })).toBeNull();
    await user.click(screen.getByRole("button", { name: "Pause daily-50" }));
    await screen.findByRole("button", { name: "Resume daily-50" });
    const search = screen.getByRole("searchbox", { name: "Search schedules" });
    await fill(user, search, "59");
    await waitFor(() => expect(rows("Schedules")).toHaveLength(2));
    expect(rows("Schedules")[1]?.textContent).toContain("daily-59");
    await fill(user, search, "nothing like it");
    await screen.findByText(/“nothing like it”/);
  });
});
