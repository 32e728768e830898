import type { TFunction } from "i18next";
import { expect, it } from "vitest";
import type { Problem } from "@/api/http";
import { problemsByName } from "./problemNames";

const FIELDS: Record<string, string> = { "field.label": "Label", "field.prompt": "Prompt" };
const t = ((key: string, { defaultValue }: { defaultValue: string }) =>
  FIELDS[key] ?? defaultValue) as unknown as TFunction;
const WORKFLOW = {
  id: "w",
  nodes: [
    { id: "draft", type: "agent", name: "First draft" },
    { id: "review", type: "human" },
  ],
  edges: [
    { source: "draft", target: "review" },
    { source: "review", target: "draft" },
  ],
};
const said = (message: string, hint = "") => {
  const problem: Problem = { code: "x", severity: "error", pointer: "", line: 1, column: 1, message, hint, fix: null };
  const [named] = problemsByName([problem], WORKFLOW, "en", t);
  return [named?.message, named?.hint];
};

it("names nodes, edges and fields as the screen does", () => {
  expect(
    said(
      "edge 'review->draft' waits for 'rejected', but human 'review' does not emit it: its answers are 'approve' and 'reject'",
      "Did you mean 'reject'?",
    ),
  ).toEqual([
    "“review” → “First draft” waits for 'rejected', but “review” does not emit it: its answers are 'approve' and 'reject'",
    "Did you mean 'reject'?",
  ]);
  expect(said("'condition.label' of edge number 2 must not be empty, not ''")[0]).toBe(
    "“Label” must not be empty, not ''",
  );
  expect(said("agent 'First draft' has no prompt")[0]).toBe("“First draft” has no prompt");
  expect(said("the node 'draft' needs a model", "Give it a `prompt`, or set `xyz`.")).toEqual([
    "“First draft” needs a model",
    "Give it a “Prompt”, or set `xyz`.",
  ]);
});

it("leaves quoted texts that are no ids", () => {
  expect(said("end 'end' reads 'missing', which nothing writes")[0]).toBe(
    "end 'end' reads 'missing', which nothing writes",
  );
});
