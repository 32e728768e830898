import { expect, test } from "vitest";
import { layoutOf } from "./layout";

test("long texts get room, less of it within others, and short ones a line", () => {
  const text = { type: "string" } as const;
  expect(
    layoutOf(
      {
        type: "object",
        properties: {
          goal: text,
          name: { ...text, maxLength: 80 },
          day: { ...text, format: "date" },
          inner: { type: "object", properties: { note: text } },
        },
      },
      "Entry",
    ),
  ).toEqual({
    goal: { "ui:widget": "textarea", "ui:options": { rows: 3 } },
    name: {},
    day: {},
    inner: { note: { "ui:widget": "textarea", "ui:options": { rows: 1 } } },
  });
});

test("several of a few are ticked", () => {
  const colours = { type: "array", uniqueItems: true, items: { enum: ["red", "blue"] } } as const;
  expect(layoutOf({ properties: { colours } } as never, "Entry")).toEqual({ colours: { "ui:widget": "checkboxes" } });
});

test("what says nothing of its type, or too much, is written as text", () => {
  const field = { "ui:field": "anything" };
  expect(
    layoutOf(
      {
        type: "object",
        properties: {
          any: { title: "Any" },
          some: { type: ["string", "number"] },
          list: { type: "array" },
          perhaps: { type: ["string", "null"] },
          one: { enum: [1, 2] },
          way: { oneOf: [{ type: "string" }, { type: "number" }] },
        },
      },
      "Entry",
    ),
  ).toEqual({ any: field, some: field, list: field, perhaps: {}, one: {}, way: {} });
});

test("an entry of a list is called by its place", () => {
  const list = (items: object) => layoutOf({ type: "array", items } as never, "Entry").items;
  const called = (items: object, at: number) => (list(items) as (item: unknown, index: number) => object)(null, at);
  expect(called({ type: "string" }, 1)).toEqual({
    "ui:title": "Entry 2",
    "ui:widget": "textarea",
    "ui:options": { rows: 1 },
  });
  expect(called({ type: "number", title: "Weight" }, 0)).toEqual({ "ui:title": "Weight 1" });
});
