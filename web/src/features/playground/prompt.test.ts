import { describe, expect, it } from "vitest";
import { type Draft, documentFor, EMPTY, inputFor, isRunnable, literalTemplate, variablesIn } from "./prompt";

const draft = (change: Partial<Draft>): Draft => ({ ...EMPTY, user: "About {{topic}}", ...change });

describe("a prompt", () => {
  it("names its variables in order, once, without reserved words and escaped braces", () => {
    expect(variablesIn("{{b}} {a?} {{ a | upper }}", "{c.d} {{#each list}}{{this}}{{/each}}{{else}}")).toEqual([
      "b",
      "a",
      "c",
      "list",
    ]);
    expect(variablesIn('{"a": 1} {} \\{x} \\{\\{y}} { return z; } $' + "{HOME}")).toEqual([]);
  });

  it("becomes a workflow that asks one model, with a limit", () => {
    const document = documentFor(draft({ system: "Be brief.", limit: "0.5" }), { kind: "model", name: " a:b " });
    expect(document).toMatchObject({
      id: "playground",
      tags: ["playground"],
      input: { type: "object", properties: { topic: {} } },
      config: { limits: { costUsd: 0.5 }, budget: { policy: "stop" } },
      nodes: [{ type: "agent", config: { system: "Be brief.", prompt: "About {{topic}}", model: "a:b" } }],
    });
  });

  it("leaves the model to the server if none is named, and the system prompt to a saved agent", () => {
    const configOf = (target: Parameters<typeof documentFor>[1]) =>
      (documentFor(draft({ system: "Be brief." }), target).nodes as { config: object }[])[0]?.config;
    expect(configOf({ kind: "model", name: "" })).toEqual({ system: "Be brief.", prompt: "About {{topic}}" });
    expect(configOf({ kind: "agent", name: "writer" })).toEqual({ agent: "writer", prompt: "About {{topic}}" });
  });

  it("sends only the values of its variables, and earlier messages", () => {
    const messages = [{ role: "user", content: "Hi" }];
    expect(inputFor(draft({ messages }), { topic: "tides", other: 1 })).toEqual({
      topic: "tides",
      earlier_messages: messages,
    });
  });

  it("runs with a user prompt or earlier messages, and agents that have names", () => {
    expect(isRunnable(EMPTY)).toBe(false);
    expect(isRunnable(draft({}))).toBe(true);
    expect(isRunnable({ ...EMPTY, messages: [{ role: "user", content: "Hi" }] })).toBe(true);
    expect(isRunnable(draft({ targets: [{ kind: "agent", name: "" }] }))).toBe(false);
  });

  it("escapes the braces of a text that look like placeholders", () => {
    const text = 'Use {{x}}, {y} and {"a": 1}';
    expect(variablesIn(literalTemplate(text))).toEqual([]);
    expect(literalTemplate(text)).toBe('Use \\{\\{x}}, \\{y} and {"a": 1}');
  });
});
