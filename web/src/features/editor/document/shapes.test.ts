import { expect, test } from "vitest";
import type { JsonObject } from "@/api/views";
import { textOfValue, valueOfText } from "../fields/boxes";
import { asWords } from "../fields/fieldContext";
import { configFields, fieldsNamed } from "./shapes";

const nullable = (shape: JsonObject): JsonObject => ({ anyOf: [shape, { type: "null" }] });
const SCHEMA: JsonObject = {
  $defs: {
    Node: {
      allOf: [
        {
          if: { properties: { type: { enum: ["human", "checkpoint"] } } },
          // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
          then: { properties: { config: { anyOf: [{ $ref: "#/$defs/Human" }, { type: "null" }] } } },
        },
      ],
    },
    Human: {
      required: ["message"],
      properties: {
        message: {
          "x-kind": "template",
          anyOf: [{ type: "string" }, { type: "object", additionalProperties: { type: "string" } }],
        },
        when: nullable({ type: "string", "x-kind": "expression" }),
        options: nullable({ type: "array", items: { $ref: "#/$defs/Option" } }),
        actions: nullable({ type: "array", items: { type: "string", enum: ["approve", "reject"] } }),
        tools: nullable({ type: "array", items: { type: "string", "x-kind": "tool" } }),
        timeout: nullable({ anyOf: [{ type: "string", pattern: "^(ms|s|min)$" }, { type: "number" }] }),
        set: nullable({ type: "object", additionalProperties: { type: "string", "x-kind": "expression" } }),
        form: nullable({ type: "object", additionalProperties: true }),
        approvers: nullable({ $ref: "#/$defs/Option" }),
        limit: nullable({ type: "integer", minimum: 1 }),
      },
    },
    Option: { required: ["value"], properties: { value: { type: "string", description: "What it gives." } } },
  },
};

test("each value gets the control that matches its schema", () => {
  const fields = new Map(configFields(SCHEMA, "checkpoint").map((one) => [one.name, one]));
  const kind = (name: string) => fields.get(name)?.control;
  expect(fields.get("message")).toMatchObject({ required: true, control: { kind: "formula", in: "template" } });
  expect(kind("when")).toEqual({ kind: "formula", in: "condition" });
  expect(kind("options")).toMatchObject({ kind: "list", fields: [{ name: "value", about: "What it gives." }] });
  expect(kind("actions")).toEqual({ kind: "choices", choices: ["approve", "reject"] });
  expect(kind("tools")).toEqual({ kind: "picks", of: "tool" });
  expect(kind("set")).toEqual({ kind: "rows", in: "expression" });
  expect(kind("form")).toEqual({ kind: "schema" });
  expect(kind("approvers")).toMatchObject({ kind: "group" });
  expect(kind("limit")).toEqual({ kind: "number", least: 1, most: null, isWhole: true });
  expect(configFields(SCHEMA, "unheard")).toEqual([]);
  expect(fieldsNamed(SCHEMA, "Option").map((one) => one.name)).toEqual(["value"]);
});

test("every value survives formatting and parsing", () => {
  for (const value of ["plain", "3", "true", 3, true, null, ["a"], { a: 1 }, ""])
    if (value !== "") expect(valueOfText(textOfValue(value))).toEqual(value);
  expect(valueOfText("")).toBeUndefined();
  expect(asWords("maxIterations")).toBe("Max iterations");
});
