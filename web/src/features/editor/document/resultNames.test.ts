import { expect, test } from "vitest";
import { scopeAt } from "./formulaScope";
import { resultNameOf, withResultName } from "./resultNames";

const node = (outputs?: Record<string, string>) => ({
  id: "a",
  type: "agent",
  config: {},
  ...(outputs && { outputs }),
});

test("the result name is found, set, changed and removed without touching other outputs", () => {
  expect(resultNameOf(node())).toBe("");
  expect(withResultName(node(), "report")).toEqual({ report: "result" });
  const both = node({ score: "result.score", report: "result" });
  expect(resultNameOf(both)).toBe("report");
  expect(withResultName(both, "text")).toEqual({ text: "result", score: "result.score" });
  expect(withResultName(both, "")).toEqual({ score: "result.score" });
  expect(withResultName(node({ report: "result" }), "")).toBeUndefined();
});

test("a name that another output uses is rejected", () => {
  const both = node({ score: "result.score", report: "result" });
  expect(withResultName(both, "score")).toEqual({ score: "result.score", report: "result" });
});

test("the output schema of an agent gives the members of its result name", () => {
  const config = { outputSchema: { type: "object", properties: { questions: { type: "array" } } } };
  const definition = { id: "w", nodes: [{ id: "a", type: "agent", config, outputs: { plan: "result" } }], edges: [] };
  const plan = scopeAt(definition).names.find((one) => one.name === "plan");
  expect(plan?.members.map((one) => [one.name, one.type])).toEqual([["questions", "array"]]);
});
