import { expect, it } from "vitest";
import { idOf } from "./ids";

it("derives ids from names", () => {
  expect(idOf("Research, with a review")).toBe("research-with-a-review");
  expect(idOf("  Größere Anfragen (2)! ")).toBe("grossere-anfragen-2");
  expect(idOf("研究 A")).toBe("a");
  expect(idOf("研究")).toBe("workflow");
  expect(idOf("../..")).toBe("");
  expect(idOf("a".repeat(300))).toHaveLength(60);
});
