import { expect, it } from "vitest";
import type { Definition, DefinitionEdge, DefinitionNode, JsonObject } from "@/api/views";
import { answersOf, choosesAnswer, conditionFor, followedOutcomes, outcomeOf, outcomesOf, portsOf } from "./outcomes";

const made = (nodes: DefinitionNode[], edges: DefinitionEdge[] = []): Definition => ({ id: "w", nodes, edges });
const node = (type: string, config: JsonObject = {}): DefinitionNode => ({ id: type, type, config });
const answers = (one: DefinitionNode, ...others: DefinitionNode[]) => answersOf(one, made([one, ...others]));

it("knows the answers of nodes that choose", () => {
  expect(answers(node("human"))).toEqual(["approve", "reject"]);
  expect(answers(node("human", { actions: ["edit", "skip"] }))).toEqual(["edit", "skip"]);
  expect(answers(node("human", { options: [{ value: "yes", label: "Yes!" }, { value: "no" }] }))).toEqual([
    "yes",
    "no",
  ]);
  expect(answers(node("decision", { cases: [{ when: "a", label: "x" }], default: "y" }))).toEqual(["x", "y"]);
  expect(answers(node("decision", { llmPrompt: "?", choices: ["x", { label: "z" }] }))).toEqual(["x", "z"]);
  expect(answers(node("decision", { expression: "score > 3" }))).toEqual(["true", "false"]);
  expect(answers(node("decision", { expression: "kind" }))).toBeNull();
  expect(answers(node("agent"))).toBeNull();
  expect(answers(node("agent", { outputSchema: { properties: { next: { enum: ["a", "b"] } } } }))).toEqual(["a", "b"]);
});

it("knows the tools between which the agents before a tool executor choose", () => {
  const executor = node("tool_executor");
  const agent = node("agent", { tools: ["search", "calculator"] });
  expect(answersOf(executor, made([agent, executor], [{ source: "agent", target: "tool_executor" }]))).toEqual([
    "search",
    "calculator",
  ]);
  expect(answersOf(executor, made([executor]))).toBeNull();
});

it("gives each outcome its condition, and finds the outcome of each condition", () => {
  for (const type of ["human", "agent", "decision", "wait", "tool"]) {
    const source = node(type);
    const definition = made([source], [{ source: type, target: "x", condition: { type: "label", label: "a" } }]);
    for (const outcome of outcomesOf(source, definition)) {
      const condition = conditionFor(outcome, source);
      const edge = { source: type, target: "y", ...(condition ? { condition } : {}) };
      expect(outcomeOf(edge, source), `${type} ${outcome.id}`).toEqual(outcome);
    }
  }
  expect(outcomeOf({ source: "human", target: "x", label: "approve" }, node("human")).id).toBe("answer:approve");
  expect(outcomeOf({ source: "agent", target: "x", label: "approve" }, node("agent")).id).toBe("other");
});

it("has one port for each answer, and for each exit that an edge follows", () => {
  const person = node("human");
  const back = { source: "human", target: "draft", condition: { type: "label", label: "reject" } };
  const late = { source: "human", target: "end", condition: { type: "error", codes: ["gate-timeout"] } };
  const definition = made([person], [back, late]);
  expect(portsOf(person, definition).map((one) => one.id)).toEqual(["answer:approve", "answer:reject", "timeout"]);
  expect(followedOutcomes(person, definition)).toEqual(
    new Map([
      ["answer:reject", "draft"],
      ["timeout", "end"],
    ]),
  );
  expect(portsOf(node("agent"), made([node("agent")], [{ source: "agent", target: "x" }]))).toEqual([]);
  const failing = made([node("agent")], [{ source: "agent", target: "x", condition: { type: "error" } }]);
  expect(portsOf(node("agent"), failing).map((one) => one.id)).toEqual(["other", "error"]);
});

it("asks for an answer only where a node chooses", () => {
  expect(choosesAnswer(node("human"), made([]))).toBe(true);
  expect(choosesAnswer(node("agent"), made([]))).toBe(false);
  expect(choosesAnswer(node("end"), made([]))).toBe(false);
});
