import { expect, test } from "vitest";
import { knownAt } from "./known";
import { keptAs, keptUnder } from "./resultNames";

const node = (outputs?: Record<string, string>) => ({
  id: "a",
  type: "agent",
  config: {},
  ...(outputs && { outputs }),
});

test("the name of the whole result is found, given, changed and taken away, and other outputs stay", () => {
  expect(keptAs(node())).toBe("");
  expect(keptUnder(node(), "report")).toEqual({ report: "result" });
  const both = node({ score: "result.score", report: "result" });
  expect(keptAs(both)).toBe("report");
  expect(keptUnder(both, "text")).toEqual({ text: "result", score: "result.score" });
  expect(keptUnder(both, "")).toEqual({ score: "result.score" });
  expect(keptUnder(node({ report: "result" }), "")).toBeUndefined();
});

test("a name that another output has is not taken from it", () => {
  const both = node({ score: "result.score", report: "result" });
  expect(keptUnder(both, "score")).toEqual({ score: "result.score", report: "result" });
});

test("what an agent must answer is offered inside of the name it is kept under", () => {
  const config = { outputSchema: { type: "object", properties: { questions: { type: "array" } } } };
  const definition = { id: "w", nodes: [{ id: "a", type: "agent", config, outputs: { plan: "result" } }], edges: [] };
  const plan = knownAt(definition).names.find((one) => one.name === "plan");
  expect(plan?.inside.map((one) => [one.name, one.type])).toEqual([["questions", "array"]]);
});
