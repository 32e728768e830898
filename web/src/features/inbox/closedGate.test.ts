import { expect, it } from "vitest";
import { closingAnswerOf } from "./closedGate";

it("finds the answer to the gate that was open, not to an earlier gate of its step", () => {
  const closing = (action: string, at: number, step = "pay:1") => ({
    nodeId: "pay",
    step,
    action,
    by: "ben",
    cause: "answer",
    at,
  });
  const answers = [closing("approve", 5), closing("reject", 9, "send:1")];
  expect(closingAnswerOf({ step: "pay:1", openedAt: 1 }, answers)?.action).toBe("approve");
  expect(closingAnswerOf({ step: "pay:1", openedAt: 7 }, answers)).toBeUndefined();
});
