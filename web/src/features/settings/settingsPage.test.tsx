import { screen, waitFor, within } from "@testing-library/react";
import { beforeEach, expect, it } from "vitest";
import type { Schemas } from "@/api/views";
import { setting } from "@/testing/answers";
import { dialog, fill, noDialog, open, server } from "@/testing/page";
import { refusal } from "@/testing/server";

const worker = (more: Partial<Schemas["WorkerView"]>): Schemas["WorkerView"] => ({
  name: "web-1/812/1/1",
  role: "server",
  version: "1.0.0",
  queues: [],
  capacity: 0,
  executions: 3,
  steps: 0,
  since: 1_767_225_600,
  beatSeconds: 1,
  ...more,
});

const report: Schemas["WorkersReport"] = {
  version: "1.0.0",
  engine: "",
  shared: true,
  workers: [worker({}), worker({ name: "gpu-1/7/1/1", role: "worker", queues: ["gpu"], capacity: 2, steps: 1 })],
  queues: [
    { queue: "gpu", workers: 1, waiting: 0, running: 1, oldestSeconds: 0 },
    { queue: "slow", workers: 0, waiting: 4, running: 0, oldestSeconds: 60 },
  ],
  owned: [{ executionId: "exec-1", worker: "web-1/812/1/1" }],
};

beforeEach(() => {
  server.get("/api/settings", { version: "1.0.0", store: "postgresql://db/pointsman", settings: [] });
});

it("lists the processes, the queues without workers, and the owners of executions", async () => {
  server.get("/api/workers", report);
  await open("/settings");
  const processes = await screen.findByRole("table", { name: "Workers" });
  expect(within(processes).getByRole("row", { name: /gpu-1.*1 \/ 2/ })).toBeTruthy();
  const queues = screen.getByRole("table", { name: "Queues" });
  expect(within(queues).getByRole("row", { name: /slow\s*none\s*0\s*4/ })).toBeTruthy();
  expect(within(screen.getByRole("table", { name: /Owners/ })).getByText("exec-1")).toBeTruthy();
});

it("states that a store of one process is not shared", async () => {
  server.get("/api/workers", { ...report, shared: false, workers: [], queues: [], owned: [] });
  await open("/settings");
  expect(await screen.findByText(/One process does everything/)).toBeTruthy();
});

const NOW = { effect: "now" as const };
const quiet = { ...report, shared: false, workers: [], queues: [], owned: [] };

function serve(...found: Schemas["SettingView"][]) {
  server.get("/api/workers", quiet);
  server.get("/api/settings", () => ({ version: "1.0.0", store: "memory:", settings: found }));
}

it("changes and resets a setting that takes effect at once, with the version that it read", async () => {
  const entered = { ...NOW, source: "app", entered: "de", changedBy: "ada", etag: '"1"' };
  serve(
    setting("language", "de", entered),
    setting("delays", true),
    setting("model", "x", { source: "POINTSMAN_MODEL" }),
  );
  server.put("/api/settings/{name}", ({ body }) => setting("language", body.value, entered));
  server.delete("/api/settings/{name}", () => undefined);
  const { user } = await open("/settings");
  await screen.findByRole("row", { name: /language.*this page \(ada\)/ });
  expect(screen.getByRole("row", { name: /delays/ }).textContent).toContain("Needs a restart");
  await user.click(screen.getByRole("button", { name: "Edit language" }));
  const form = await dialog("Edit language");
  await fill(user, form.getByLabelText(/^Language/), "fr");
  await user.click(form.getByRole("button", { name: "Save" }));
  await noDialog();
  await user.click(screen.getByRole("button", { name: "Edit language" }));
  await user.click((await dialog("Edit language")).getByRole("button", { name: "Reset to default" }));
  await noDialog();
  const [changed] = server.requestsTo("put", "/api/settings/{name}");
  const [reset] = server.requestsTo("delete", "/api/settings/{name}");
  expect([changed?.at.name, changed?.body]).toEqual(["language", { value: "fr" }]);
  expect([changed?.headers.get("if-match"), reset?.headers.get("if-match")]).toEqual(['"1"', '"1"']);
});

it("names the variable that fixes a setting", async () => {
  serve(setting("language", "de", { ...NOW, source: "POINTSMAN_LANGUAGE", fixedBy: "POINTSMAN_LANGUAGE" }));
  await open("/settings");
  const row = await screen.findByRole("row", { name: /language/ });
  expect(row.textContent).toContain("Set in POINTSMAN_LANGUAGE");
  expect(screen.queryByRole("button", { name: "Edit language" })).toBeNull();
});

it("changes variables and retention by lines and fields", async () => {
  const own = { completed: "30d", failed: 5, workflows: { nightly: { failed: 1 } } };
  serve(
    setting("variables", { FILE: "1" }, NOW),
    setting("retention", own, { ...NOW, source: "app", entered: own, etag: '"1"' }),
  );
  server.put("/api/settings/{name}", ({ at, body }) => setting(at.name ?? "", body.value, NOW));
  const { user } = await open("/settings");
  await user.click(await screen.findByRole("button", { name: "Edit variables" }));
  const lines = await dialog("Edit variables");
  await fill(user, lines.getByLabelText("Variables"), "API_URL=https://a.example.com/?x=1\nEMPTY=");
  await user.click(lines.getByRole("button", { name: "Save" }));
  await noDialog();
  await user.click(screen.getByRole("button", { name: "Edit retention" }));
  const rules = await dialog("Edit retention");
  await fill(user, rules.getByLabelText("Number of completed"), "100");
  await user.clear(rules.getByLabelText("Number of failed"));
  await user.click(rules.getByRole("button", { name: "Save" }));
  await noDialog();
  expect(server.requestsTo("put", "/api/settings/{name}").map((one) => one.body.value)).toEqual([
    { API_URL: "https://a.example.com/?x=1", EMPTY: "" },
    { completed: { age: "30d", count: 100 }, workflows: { nightly: { failed: 1 } } },
  ]);
});

it("tests and saves a mail server, with errors at their fields, and deletes it", async () => {
  const mail = { host: "smtp.example.com", port: null, security: "starttls", username: "desk", password: "***" };
  const value = { ...mail, sender: "desk@example.com", recipients: ["*"], requires_approval: false };
  let known = setting("mail", null, NOW);
  server.get("/api/workers", quiet);
  server.get("/api/settings", () => ({
    version: "1.0.0",
    store: "memory:",
    settings: [setting("allow_email_sending", false, NOW), known],
  }));
  server.post("/api/settings/mail/test", { sent: false, error: "smtp.example.com:587 refuses the login" });
  server.put("/api/settings/mail", ({ body }) => {
    if (body.port === 22)
      return refusal(422, "setting-invalid", "calls to port 22 are blocked", {
        problems: [{ code: "setting-invalid", pointer: "body/port", message: "calls to port 22 are blocked" }],
      });
    known = setting("mail", value, { ...NOW, source: "app", entered: value, changedBy: "ada", etag: '"1"' });
    return known;
  });
  server.delete("/api/settings/mail", () => {
    known = setting("mail", null, NOW);
    return undefined;
  });
  const { user } = await open("/settings");
  await user.click(await screen.findByRole("button", { name: "Enter a mail server" }));
  const form = await dialog("Mail server");
  await fill(user, form.getByLabelText(/^Server/), "smtp.example.com");
  await fill(user, form.getByLabelText(/^Port/), "22");
  await fill(user, form.getByLabelText(/^User/), "desk");
  await fill(user, form.getByLabelText(/^Password/), "pass-word");
  await fill(user, form.getByLabelText(/^Sender/), "desk@example.com");
  await fill(user, form.getByLabelText(/^Recipient of a test/), "ada@example.com");
  await user.click(form.getByRole("button", { name: "Send a test message" }));
  await form.findByText(/refuses the login/);
  await user.click(form.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(form.getByLabelText(/^Port/).getAttribute("aria-invalid")).toBe("true"));
  expect(document.activeElement).toBe(form.getByLabelText(/^Port/));
  expect(form.getAllByRole("alert")).toHaveLength(1);
  await user.clear(form.getByLabelText(/^Port/));
  await user.click(form.getByRole("button", { name: "Save" }));
  await noDialog();
  await screen.findByText("smtp.example.com:587");
  await user.click(screen.getByRole("button", { name: "Delete mail server" }));
  const asked = await dialog("Delete the mail server?");
  await user.click(asked.getByRole("button", { name: "Delete mail server" }));
  await screen.findByText("No mail server.");
  expect(server.requestsTo("post", "/api/settings/mail/test")[0]?.body).toMatchObject({ to: "ada@example.com" });
  const saved = server.requestsTo("put", "/api/settings/mail")[1];
  expect(saved?.headers.get("if-none-match"), "an admin who entered one meanwhile is not overwritten").toBe("*");
  expect(saved?.body).toEqual({
    host: "smtp.example.com",
    security: "starttls",
    username: "desk",
    password: "pass-word",
    sender: "desk@example.com",
    recipients: ["*"],
    requiresApproval: false,
  });
});
