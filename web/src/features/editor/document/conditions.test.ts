import { expect, it } from "vitest";
import { knownPaths, readCondition, writeCondition } from "./conditions";

it("reads and writes conditions without a change", () => {
  for (const text of [
    "score >= 80",
    'status == "open" and score < 3.5',
    'kind == "a" or kind == "b"',
    '"urgent" in tags',
    '"x and y" not in text',
    "approved and not done",
    "report == null or report.title != null",
    'nodes["first-draft"].action == "approve"',
    "items[0].price > -2",
    "ok == true",
    '"a \\"b\\" \\n" in text',
  ]) {
    const condition = readCondition(text);
    expect(condition, text).not.toBeNull();
    if (condition) expect(writeCondition(condition)).toBe(text);
  }
});

it("leaves an expression that rows cannot represent", () => {
  for (const text of [
    "a and b or c",
    "len(tags) > 2",
    "(a or b) and c",
    "score > limit",
    "not (a and b)",
    "0 < x < 10",
    'text == "\\d+"',
    "true",
    "a ==",
    "x in [1, 2]",
  ])
    expect(readCondition(text), text).toBeNull();
});

it("reads each operator", () => {
  expect(readCondition("a == null and b != null and not c and d")?.rows.map((row) => row.operator)).toEqual([
    "isEmpty",
    "isSet",
    "isFalse",
    "isTrue",
  ]);
  expect(readCondition("")?.rows).toEqual([]);
});

it("lists fields and members of results by their names", () => {
  const leaf = (name: string, type = "") => ({ name, type, about: "", members: [] });
  const names = [
    leaf("topic", "string"),
    { name: "report", type: "object", about: "", members: [leaf("score", "number")] },
    {
      name: "nodes",
      type: "object",
      about: "",
      members: [{ ...leaf("ask-1"), label: "Ask", members: [leaf("action")] }],
    },
    { name: "input", type: "object", about: "", members: [leaf("topic", "string")] },
    { name: "state", type: "object", about: "", members: [leaf("topic")] },
  ];
  expect(knownPaths(names)).toEqual([
    { path: "topic", type: "string", label: "topic" },
    { path: "report", type: "object", label: "report" },
    { path: "report.score", type: "number", label: "report › score" },
    { path: 'nodes["ask-1"]', type: "", label: "Ask" },
    { path: 'nodes["ask-1"].action', type: "", label: "Ask › action" },
  ]);
});
