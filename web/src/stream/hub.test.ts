import { describe, expect, it } from "vitest";
import { ApiError } from "@/api/http";
import type { follow, StreamMessage } from "./follow";
import { type FromHub, Hub, SINGLES_MAX, type Viewer } from "./hub";

type Options = Parameters<typeof follow>[1];

/** A hub over connections that the test controls. */
function stage() {
  const open = new Map<string, Options>();
  const connect = ((path: string, options: Options) =>
    new Promise<void>((_, refuse) => {
      open.set(path, options);
      options.signal.addEventListener("abort", () => open.delete(path));
      refused.set(path, refuse);
    })) as typeof follow;
  const refused = new Map<string, (why: unknown) => void>();
  return { hub: new Hub(connect), open, refused };
}

function viewer(): Viewer & { heard: FromHub[] } {
  const heard: FromHub[] = [];
  return { heard, post: (message) => heard.push(message) };
}

const streamMessage = (data: string): StreamMessage => ({ id: null, event: "x", data });
const single = (watch: number, path: string) => ({ kind: "open", watch, path, isBoard: false, after: null }) as const;
const board = (watch: number) => ({ kind: "open", watch, path: "/board", isBoard: true, after: "7.5" }) as const;

describe("stream hub", () => {
  it("opens one connection for all subscribers of a stream and sends events to each", () => {
    const { hub, open } = stage();
    const [one, other] = [viewer(), viewer()];
    hub.handle(one, board(1));
    hub.handle(other, board(7));
    open.get("/board")?.onConnection?.("open");
    open.get("/board")?.onEvent(streamMessage("a"));
    expect([...open.keys()]).toEqual(["/board"]);
    expect(open.get("/board")?.after).toBe("7.5");
    expect(one.heard.map((said) => said.kind)).toEqual(["connection", "event"]);
    expect(other.heard.at(-1)).toEqual({ kind: "event", watch: 7, message: streamMessage("a") });
    const late = viewer();
    hub.handle(late, board(1));
    expect(late.heard).toEqual([{ kind: "connection", watch: 1, connection: "open" }]);
  });

  it("connects the visible windows first, within the limit", () => {
    const { hub } = stage();
    const tabs = Array.from({ length: 8 }, viewer);
    tabs.forEach((tab, at) => {
      hub.handle(tab, { kind: "look", isSeen: true });
      hub.handle(tab, board(1));
      hub.handle(tab, single(2, `/${at}`));
      hub.handle(tab, { kind: "look", isSeen: at >= 6 });
    });
    expect(hub.connected.length).toBe(1 + SINGLES_MAX);
    expect([...hub.connected].sort()).toEqual(["/6", "/7", "/board"]);
    hub.handle(tabs[0] as Viewer, { kind: "look", isSeen: true });
    expect([...hub.connected].sort()).toEqual(["/0", "/7", "/board"]);
    hub.handle(tabs[0] as Viewer, { kind: "leave" });
    expect([...hub.connected].sort()).toEqual(["/6", "/7", "/board"]);
    for (const tab of tabs) hub.handle(tab, { kind: "leave" });
    expect(hub.connected).toEqual([]);
  });

  it("restarts when another user logs in, and notifies the other windows", () => {
    const { hub, open } = stage();
    const [one, other] = [viewer(), viewer()];
    hub.handle(one, board(1));
    hub.handle(other, board(1));
    const before = open.get("/board");
    hub.handle(one, { kind: "restart" });
    expect(before?.signal.aborted).toBe(true);
    expect(open.get("/board")?.signal.aborted).toBe(false);
    expect(other.heard).toEqual([{ kind: "restarted" }]);
    expect(one.heard).toEqual([]);
    before?.onEvent(streamMessage("of before"));
    expect(one.heard).toEqual([]);
  });

  it("reports why a stream was refused", async () => {
    const { hub, refused } = stage();
    const one = viewer();
    hub.handle(one, single(3, "/x"));
    refused.get("/x")?.(new ApiError(403, { detail: "no", code: "not-allowed", hint: "ask" }));
    await Promise.resolve();
    await Promise.resolve();
    expect(one.heard).toEqual([
      { kind: "refused", watch: 3, status: 403, code: "not-allowed", detail: "no", hint: "ask" },
    ]);
  });
});
