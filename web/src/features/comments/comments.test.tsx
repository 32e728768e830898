import { QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import i18next from "i18next";
import { beforeEach, describe, expect, it } from "vitest";
import { makeClient } from "@/api/client";
import { startLanguages, switchLanguage } from "@/i18n";
import { keyed } from "@/testing/answers";
import { expectText, fill, open, server } from "@/testing/page";
import { placeOf } from "../execution/ExecutionComments";
import { Comments } from "./Comments";
import { type Comment, shownComments } from "./comments";

const comment = (id: string, more: Partial<Comment> = {}): Comment => ({
  id,
  workflow: "letter",
  execution: null,
  place: null,
  by: "ada",
  text: "Too **long**",
  mentions: [],
  at: 1_700_000_000,
  editedAt: null,
  resolvedBy: null,
  ...more,
});

/** Show the comments on an execution without the page around them. */
async function show() {
  if (!i18next.isInitialized) await startLanguages();
  await switchLanguage("en");
  const nameOf = (place: string) => (place === "review" ? "Look it over" : place);
  render(
    <QueryClientProvider client={makeClient()}>
      <Comments subject={{ kind: "execution", id: "exec-1" }} place={null} nameOf={nameOf} onPlace={() => undefined} />
    </QueryClientProvider>,
  );
  return userEvent.setup({ delay: null });
}

const button = (name: string) => screen.findByRole("button", { name });

describe("comments on an execution", () => {
  let all: Comment[] = [];

  beforeEach(() => {
    all = [comment("one", { workflow: null, execution: "exec-1", place: "review" })];
    server.get("/api/me", keyed("ada", "operator"));
    server.get("/api/comments", () => ({ comments: all }));
    server.post("/api/comments", ({ body }) => {
      const made = comment("two", { workflow: null, execution: "exec-1", text: body.text, place: body.place || null });
      all = [...all, made];
      return made;
    });
    server.patch("/api/comments/{cid}", ({ at, body }) => {
      all = all.map((one) => (one.id === at.cid ? { ...one, text: body.text, editedAt: 1_700_000_100 } : one));
      return all[0] as Comment;
    });
    server.delete("/api/comments/{cid}", ({ at }) => {
      all = all.filter((one) => one.id !== at.cid);
      return undefined;
    });
  });

  it("are written, changed and deleted by their author", async () => {
    const user = await show();
    const list = within(await screen.findByRole("region", { name: "Comments" }));
    await waitFor(() => expect(list.getByText("long").tagName).toBe("STRONG"));
    expect(list.getByRole("button", { name: "Look it over" })).toBeTruthy();
    await fill(user, list.getByRole("textbox", { name: "Write a comment" }), "<img src=x> @ben");
    await user.click(list.getByRole("button", { name: "Comment" }));
    await waitFor(() => expect(list.getAllByRole("listitem")).toHaveLength(2));
    expect(server.bodiesTo("post", "/api/comments")).toEqual([
      { kind: "execution", subject: "exec-1", place: "", text: "<img src=x> @ben" },
    ]);
    expect(document.querySelector("section img")).toBeNull();
    expect(list.queryByRole("button", { name: "Resolve" })).toBeNull();
    await user.click(list.getAllByRole("button", { name: "Edit comment" })[0] as HTMLElement);
    await fill(user, await list.findByRole("textbox", { name: "Edit comment" }), "Too short");
    await user.click(list.getByRole("button", { name: "Save" }));
    await expectText("Too short");
    await user.click(list.getAllByRole("button", { name: "Delete comment" })[1] as HTMLElement);
    await waitFor(() => expect(list.getAllByRole("listitem")).toHaveLength(1));
  });

  it("complete the names of people who wrote comments here", async () => {
    all = [comment("one", { by: "ben" }), comment("two", { by: "bea" }), comment("three", { by: "Ben Two Words" })];
    const user = await show();
    const field = await screen.findByRole("textbox", { name: "Write a comment" });
    await user.type(field, "Look @b");
    const names = () =>
      within(screen.getByRole("listbox"))
        .getAllByRole("option")
        .map((one) => one.textContent);
    expect(names()).toEqual(["ben", "bea"]);
    await user.keyboard("{ArrowDown}{Enter}please");
    expect(screen.queryByRole("listbox")).toBeNull();
    await waitFor(() => expect((field as HTMLTextAreaElement).value).toBe("Look @bea please"));
    expect(server.requestsTo("get", "/api/people")).toHaveLength(0);
  });

  it("complete the names of all users for admins", async () => {
    server.get("/api/me", keyed("ada", "admin"));
    const person = { name: "zoe", role: "viewer" as const, groups: [], ways: [], logins: 0, seenAt: null };
    server.get("/api/people", ({ query }) => ({ people: query.get("search") === "z" ? [person] : [], next: null }));
    const user = await show();
    await user.type(await screen.findByRole("textbox", { name: "Write a comment" }), "@z");
    await user.click(await screen.findByRole("option", { name: "zoe" }));
    await screen.findByDisplayValue("@zoe");
  });

  it("are only read by viewers", async () => {
    server.get("/api/me", keyed("vera", "viewer"));
    await show();
    const list = within(await screen.findByRole("region", { name: "Comments" }));
    await list.findByText("long");
    expect(list.queryByRole("textbox")).toBeNull();
    expect(list.queryByRole("button", { name: "Delete comment" })).toBeNull();
  });
});

describe("mentions", () => {
  it("are counted beside the inbox, listed, and read when they are shown", async () => {
    const listed = {
      ...comment("one", { text: "@local look", place: "review", execution: null }),
      unread: true,
    };
    let unread = 1;
    server.get("/api/mentions", () => ({ mentions: [{ ...listed, unread: unread > 0 }], unread }));
    server.post("/api/mentions/read", () => {
      unread = 0;
      return undefined;
    });
    const { user } = await open("/inbox");
    await screen.findAllByText("1 unread mention");
    await user.click(await screen.findByRole("link", { name: /^Mentions/ }));
    const link = await screen.findByRole("link", { name: "in workflow letter" });
    expect(link.getAttribute("href")).toBe("/workflows/letter?panel=comments#node=review");
    await waitFor(() => expect(screen.queryByText("1 unread mention")).toBeNull());
    expect(server.requestsTo("post", "/api/mentions/read")).toHaveLength(1);
  });

  it("say in German that there are none", async () => {
    await open("/inbox?list=mentions", { language: "de" });
    await screen.findByText("Noch keine Erwähnungen.");
    expect(await button("Mehr")).toBeTruthy();
  });
});

describe("shown comments", () => {
  it("are those on the selected place, without resolved ones", () => {
    const all = [comment("a"), comment("b", { place: "write" }), comment("c", { place: "write", resolvedBy: "ben" })];
    const ids = (place: string | null, withResolved = false) =>
      shownComments(all, place, withResolved).map((one) => one.id);
    expect([ids(null), ids("write"), ids("write", true), ids("other")]).toEqual([["a", "b"], ["b"], ["b", "c"], []]);
  });

  it("lead to the node and the step that they are about", () => {
    expect(placeOf("each[1.2]/write#3")).toEqual(["write", "each[1.2]/write#3"]);
    expect(placeOf("write")).toEqual(["write", "write"]);
  });
});
