import { expect, it } from "vitest";
import { handEdits, onlyIn } from "./handEdits";
import { readColumns } from "./listColumns";
import { readViews } from "./savedViews";

it("reads the chosen columns in their order, and ignores unknown ones", () => {
  expect(readColumns(null)).toEqual(["by", "duration"]);
  expect(readColumns("cost by odd")).toEqual(["by", "cost"]);
  expect(readColumns("")).toEqual([]);
});

it("reads saved views, and drops what is damaged", () => {
  expect(readViews('{"failed today": {"status": ["failed"]}}')).toEqual({ "failed today": { status: ["failed"] } });
  for (const stored of [null, "{", "[1]", "null"]) expect(readViews(stored)).toEqual({});
});

it("finds the edits by hand that only one of two executions has", () => {
  const edit = (path: string, value: string, by = "ada") =>
    ({ seq: 3, n: 0, at: 1, kind: "steered", by, edits: [[[path], value]] }) as never;
  const own = handEdits([edit("tone", "warm"), edit("title", "New")]);
  expect(own).toEqual([
    { path: "tone", value: "warm", by: "ada" },
    { path: "title", value: "New", by: "ada" },
  ]);
  expect(onlyIn(own, handEdits([edit("tone", "warm")]))).toEqual([{ path: "title", value: "New", by: "ada" }]);
  expect(handEdits([{ seq: 1, n: 0, at: 1, kind: "started" } as never])).toEqual([]);
});
