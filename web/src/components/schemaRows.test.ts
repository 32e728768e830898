import { describe, expect, it } from "vitest";
import { rowsOf } from "./schemaRows";

describe("schema rows", () => {
  it("list each field with its type and whether it is required", () => {
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
    expect(rows[1]?.defaultValue).toBe(5);
    expect(rows[2]?.choices).toEqual(["new", "best"]);
  });

  it("resolve references and descend into objects and lists", () => {
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

  it("end at a recursive schema", () => {
    const rows = rowsOf({
      properties: { tree: { $ref: "#/$defs/Tree" } },
      $defs: { Tree: { type: "object", properties: { child: { $ref: "#/$defs/Tree" } } } },
    });
    expect(rows.length).toBeGreaterThan(2);
    expect(rows.length).toBeLessThan(10);
  });

  it("are empty for a value that is not a schema", () => {
    expect(rowsOf({})).toEqual([]);
    expect(rowsOf({ properties: null, required: "x" })).toEqual([]);
  });
});
