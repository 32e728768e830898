import { describe, expect, it } from "vitest";
import { rowsOf } from "./schemaRows";

describe("a schema as rows", () => {
  it("tells each field, what it is, and whether it must be there", () => {
    const rows = rowsOf({
      type: "object",
      properties: {
        query: { type: "string", description: "What to look for" },
        limit: { type: "integer", default: 5 },
        order: { enum: ["new", "best"] },
      },
      required: ["query"],
    });
    expect(rows.map((one) => [one.path, one.type, one.required])).toEqual([
      ["query", "string", true],
      ["limit", "integer", false],
      ["order", "any", false],
    ]);
    expect(rows[0]?.about).toBe("What to look for");
    expect(rows[1]?.otherwise).toBe(5);
    expect(rows[2]?.choices).toEqual(["new", "best"]);
  });

  it("follows references, and goes into objects and lists", () => {
    const rows = rowsOf({
      properties: {
        to: { anyOf: [{ $ref: "#/$defs/Address" }, { type: "null" }] },
        lines: { type: "array", items: { type: "object", properties: { price: { type: "number" } } } },
      },
      $defs: { Address: { type: "object", properties: { street: { type: "string" } }, required: ["street"] } },
    });
    expect(rows.map((one) => `${one.path}: ${one.type}`)).toEqual([
      "to: object",
      "to.street: string",
      "lines: object[]",
      "lines[].price: number",
    ]);
  });

  it("ends where a schema contains itself", () => {
    const rows = rowsOf({
      properties: { tree: { $ref: "#/$defs/Tree" } },
      $defs: { Tree: { type: "object", properties: { child: { $ref: "#/$defs/Tree" } } } },
    });
    expect(rows.length).toBeGreaterThan(2);
    expect(rows.length).toBeLessThan(10);
  });

  it("of what is no schema has no rows", () => {
    expect(rowsOf({})).toEqual([]);
    expect(rowsOf({ properties: null, required: "x" })).toEqual([]);
  });
});
