import { screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { AT, gate } from "@/testing/answers";
import { expectText, open, server } from "@/testing/page";
import { refusal } from "@/testing/server";

const READ = "/api/answer-links/read";
const ANSWER = "/api/answer-links/answer";
const PAGE = "/answer#token.signature";

const asking = (more: Parameters<typeof gate>[1] = {}) => ({
  workflowId: "letter",
  recipient: "ada",
  expiresAt: AT + 3600,
  scripted: false,
  // biome-ignore lint/suspicious/noExplicitAny: the page reads the gate by its own type
  gate: gate("review", { shown: { letter: "Dear Ben" }, ...more }) as any,
});

const sent = () => server.requests.filter((one) => one.path === ANSWER).map((one) => one.body);

beforeEach(() => {
  server.get("/api/me", refusal(401, "not-signed-in", "the request has no key"));
  server.post(READ, asking());
});

describe("page of an answer link", () => {
  it.each([
    ["en", "Your answer is needed", "You answer as", "Your answer has been recorded.", "Approve"],
    ["de", "Ihre Antwort wird gebraucht", "Sie antworten als", "Ihre Antwort ist gespeichert.", "Freigeben"],
  ] as const)("answers a gate without an account (%s)", async (language, title, about, done, approve) => {
    server.post(ANSWER, { closed: true });
    const { user } = await open(PAGE, { language });
    await screen.findByRole("heading", { name: title });
    await expectText(about);
    await expectText("Dear Ben");
    expect(sent()).toEqual([]);
    await user.click(await screen.findByRole("button", { name: approve }));
    await expectText(done);
    expect(sent()).toEqual([{ token: "token.signature", action: "approve" }]);
    expect(screen.queryByRole("navigation")).toBeNull();
  });

  it("asks the server nothing but the gate", async () => {
    await open(PAGE);
    await expectText("Dear Ben");
    expect(new Set(server.requests.map((one) => one.path))).toEqual(new Set([READ]));
  });

  it("offers no delegation, and reports that other votes are missing", async () => {
    server.post(READ, asking({ approvers: { users: ["ada"], quorum: 2, rejectQuorum: 1, delegable: true } }));
    server.post(ANSWER, { closed: false });
    const { user } = await open(PAGE);
    const approve = await screen.findByRole("button", { name: "Approve" });
    expect(screen.queryByRole("button", { name: "Delegate" })).toBeNull();
    await user.click(approve);
    await expectText("The workflow waits for the answers of other people.");
  });

  it.each([
    [404, "answer-link-invalid", "this link is not valid"],
    [410, "answer-link-expired", "this link has expired"],
    [409, "gate-closed", "this question was answered already"],
  ])("explains a link that opens nothing (%i %s)", async (status, code, detail) => {
    server.post(READ, refusal(status, code, detail));
    await open(PAGE);
    await expectText(detail);
    expect(screen.queryByRole("button", { name: "Approve" })).toBeNull();
  });

  it("keeps the form and reports an answer that is refused", async () => {
    server.post(ANSWER, refusal(409, "gate-changed", "the data of this question have changed"));
    const { user } = await open(PAGE);
    await user.type(await screen.findByLabelText("Comment"), "looks good");
    await user.click(screen.getByRole("button", { name: "Approve" }));
    await expectText("the data of this question have changed");
    expect(screen.getByLabelText<HTMLInputElement>("Comment").value).toBe("looks good");
  });

  it("explains a link that was cut off", async () => {
    await open("/answer");
    await expectText("The link is incomplete.");
    expect(server.requests).toEqual([]);
  });

  it("shows markup in the data as text", async () => {
    server.post(READ, asking({ message: "<b>Send?</b>", shown: { letter: "<img src=x onerror=alert(1)>" } }));
    await open(PAGE);
    await expectText("<img src=x onerror=alert(1)>");
    expect(document.querySelector("img[onerror]")).toBeNull();
    expect(document.querySelector("h2 b")).toBeNull();
  });
});
