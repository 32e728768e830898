import { expect, it } from "vitest";
import { defaultMode, modesOf, textOf } from "./valueModes";

const mode = (value: Parameters<typeof textOf>[0]) => defaultMode(value ?? null, textOf(value));

it("renders Markdown and objects with long texts, and shows other values as they are", () => {
  expect(mode("# Title\n\ntext")).toBe("rendered");
  expect(mode("It is **2**.")).toBe("rendered");
  expect(mode("plain - text\nin two lines")).toBe("raw");
  expect(mode('{"a": 1}')).toBe("json");
  expect(mode("{not json}")).toBe("raw");
  expect(mode({ a: 1, b: ["x"] })).toBe("raw");
  expect(mode({ a: { letter: "Dear Ada,\nhello" } })).toBe("rendered");
});

it("offers a tree only for values that have one", () => {
  expect(modesOf("text", "text")).toEqual(["rendered", "raw"]);
  expect(modesOf("[1]", "[1]")).toEqual(["rendered", "raw", "json"]);
  expect(modesOf({}, "{}")).toEqual(["rendered", "raw", "json"]);
  expect(modesOf(3, "3")).toEqual(["raw"]);
});
