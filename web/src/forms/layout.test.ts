import { expect, test } from "vitest";
import { layoutOf } from "./layout";

test("long texts get a text area, nested ones a smaller one, and short texts a line", () => {
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

test("a list of unique choices becomes checkboxes", () => {
  const colours = { type: "array", uniqueItems: true, items: { enum: ["red", "blue"] } } as const;
  expect(layoutOf({ properties: { colours } } as never, "Entry")).toEqual({ colours: { "ui:widget": "checkboxes" } });
});

test("a value with no type or several types becomes a free text field", () => {
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

test("a list entry is titled by its position", () => {
  const list = (items: object) => layoutOf({ type: "array", items } as never, "Entry").items;
  const called = (items: object, at: number) => (list(items) as (item: unknown, index: number) => object)(null, at);
  expect(called({ type: "string" }, 1)).toEqual({
    "ui:title": "Entry 2",
    "ui:widget": "textarea",
    "ui:options": { rows: 1 },
  });
  expect(called({ type: "number", title: "Weight" }, 0)).toEqual({ "ui:title": "Weight 1" });
});
