import { describe, expect, it } from "vitest";
import { arrowName, stepName } from "./nodeNames";

const NAMES: Record<string, string> = { each: "Each chapter", write: "Write", check: "Check" };
const called = (node: string) => NAMES[node] ?? node;

describe("the names of steps", () => {
  it("combine node names with branch and visit numbers", () => {
    expect(stepName("write", called)).toBe("Write");
    expect(stepName("write#3", called)).toBe("Write #3");
    expect(stepName("each[1.2]/write#3", called)).toBe("Each chapter [3] / Write #3");
    expect(stepName("each~check.1.0[2.0]/each[1.1]/write~check.2.met", called)).toBe(
      "Each chapter [1] / Each chapter [2] / Write",
    );
  });

  it("fall back to ids for unnamed nodes", () => {
    expect(stepName("odd.node#2", called)).toBe("odd.node #2");
    expect(stepName("", called)).toBe("");
  });

  it("name both ends of an arrow without an id", () => {
    expect(arrowName("write->check", called)).toBe("Write → Check");
    expect(arrowName("write->check 2", called)).toBe("Write → Check 2");
    expect(arrowName("again", called)).toBe("again");
  });
});
