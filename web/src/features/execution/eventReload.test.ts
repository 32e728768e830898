import { afterEach, describe, expect, it, vi } from "vitest";
import { rangesIn, reloadEvents } from "./eventReload";

afterEach(() => vi.unstubAllGlobals());

describe("reload of old events", () => {
  it("loads neighbouring positions by one request", () => {
    expect(rangesIn([1, 0, 1, 3, 1, 70_000, 1, 70_001, 2, 0])).toEqual([
      { seq: 1, from: 0, to: 3 },
      { seq: 1, from: 70_000, to: 70_001 },
      { seq: 2, from: 0, to: 0 },
    ]);
  });

  it("returns exactly the requested events, also deep inside a row", async () => {
    const asked: string[] = [];
    vi.stubGlobal("fetch", async (path: string) => {
      asked.push(path);
      const from = new URL(path, "http://x").searchParams.get("after") === "7.41" ? 42 : 0;
      const events = [0, 1, 2].map((at) => ({ seq: 7, n: from + at, at: 0, kind: "step_started" }));
      return Response.json({ events, last: "7.44", status: "running" });
    });
    const found = await reloadEvents("x", [7, 42, 7, 44]);
    expect(asked).toEqual(["/api/workflows/executions/x/events?after=7.41&limit=3"]);
    expect(found.map((event) => event.n)).toEqual([42, 44]);
  });
});
