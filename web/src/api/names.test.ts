import { QueryClient } from "@tanstack/react-query";
import { afterEach, describe, expect, it, vi } from "vitest";
import { chunksOf, freeId, workflowName } from "./names";

afterEach(() => vi.unstubAllGlobals());

describe("names of workflows", () => {
  it("share one request per tick and are null for unknown ids", async () => {
    const asked: string[] = [];
    vi.stubGlobal("fetch", async (path: string) => {
      asked.push(path);
      return Response.json({ workflows: [{ id: "a b", name: "A" }], next: null });
    });
    const client = new QueryClient();
    const found = await Promise.all(["a b", "gone", "a b"].map((id) => client.fetchQuery(workflowName(id))));
    expect(asked).toEqual(["/api/workflows?id=a+b&id=gone&disabled=true&limit=50"]);
    expect(found).toEqual([{ id: "a b", name: "A" }, null, { id: "a b", name: "A" }]);
  });

  it("find a free id by one request, and return the id itself if the request fails", async () => {
    const asked = vi.fn(async () => Response.json({ workflows: [{ id: "tide" }, { id: "tide-2" }], next: null }));
    vi.stubGlobal("fetch", asked);
    expect(await freeId("tide")).toBe("tide-3");
    expect(await freeId("ebb")).toBe("ebb");
    expect(asked).toHaveBeenCalledTimes(2);
    vi.stubGlobal("fetch", async () => Response.error());
    expect(await freeId("tide")).toBe("tide");
  });

  it("are requested in portions that fit into an address", () => {
    const ids = Array.from({ length: 120 }, (_, at) => `id-${at}`);
    expect(chunksOf(ids).map((one) => one.length)).toEqual([50, 50, 20]);
    expect(chunksOf([..."abc"].map((one) => one.repeat(3_000))).map((one) => one.length)).toEqual([1, 1, 1]);
    expect(chunksOf(ids).flat()).toEqual(ids);
    expect(chunksOf([])).toEqual([]);
  });
});
