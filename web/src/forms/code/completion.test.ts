import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { scopeAt } from "@/features/editor/document/formulaScope";
import type { FormulaSyntax } from "@/features/editor/document/shapes";
import { completionsAt } from "./completion";

const FLOW: Definition = {
  id: "flow",
  input: { type: "object", properties: { goal: { type: "string", description: "What for." } } },
  nodes: [
    { id: "write", type: "agent", outputs: { "draft.text": "result" } },
    { id: "check-it", type: "transform", config: { set: { score: "1" }, operations: [{ push: "x", to: "list" }] } },
    { id: "each", type: "parallel", config: { items: "rows", as: "row" } },
  ],
  edges: [],
};
const KNOWN = scopeAt(FLOW, FLOW.nodes[0]);
const LEN = { name: "len", signature: "len(x)", about: "How many." };

function labels(text: string, spelled: FormulaSyntax = "expression", isAsked = false): string[] {
  const at = text.indexOf("|");
  const found = completionsAt(text.slice(0, at), text.slice(at + 1), spelled, KNOWN, [LEN], isAsked);
  return found?.offers.map((one) => one.label) ?? [];
}

test("a bare name is completed with fields, roots, functions and keywords", () => {
  const found = labels("sc|");
  for (const name of ["goal", "draft", "score", "list", "row", "result", "nodes", "item", "len", "and"])
    expect(found).toContain(name);
  expect(labels("3 + |")).toEqual([]);
  expect(labels("3 + |", "expression", true)).toContain("score");
});

test("behind a dot only members are offered", () => {
  expect(labels("input.|")).toEqual(["goal"]);
  expect(labels("nodes.wr|")).toEqual(["write", "check-it", "each"]);
  expect(labels("$.in|")).toContain("goal");
  expect(labels("nodes.write.|")).toContain("text");
  expect(labels("goal.|")).toEqual([]);
});

test("a name that needs brackets is inserted with brackets", () => {
  const found = completionsAt("nodes.", "", "expression", KNOWN, [], false);
  expect(found?.offers.find((one) => one.label === "check-it")?.insert).toBe('["check-it"]');
});

test("in a template names are completed within braces, which are closed", () => {
  expect(labels("Write about go|", "template")).toEqual([]);
  expect(labels("Write about {go|", "template")).toContain("goal");
  expect(labels("Write about {go|", "template")).not.toContain("len");
  const open = completionsAt("About {{go", "", "template", KNOWN, [], false);
  expect(open?.offers.find((one) => one.label === "goal")?.insert).toBe("goal}}");
  const closed = completionsAt("About {go", "} and", "template", KNOWN, [], false);
  expect(closed?.offers.find((one) => one.label === "goal")?.insert).toBe("goal");
  const asked = completionsAt("About ", "", "template", KNOWN, [], true);
  expect(asked?.offers.find((one) => one.label === "goal")?.insert).toBe("{{goal}}");
  expect(labels("{{#e|", "template")).toContain("#each");
});

test("the scope has schemas, closed if the input allows no other fields", () => {
  expect(KNOWN.schemas.state?.additionalProperties).toBe(false);
  expect(KNOWN.localNames).toContain("row");
  expect(scopeAt({ ...FLOW, input: { type: "object" } }).schemas.state?.additionalProperties).toBeUndefined();
});
