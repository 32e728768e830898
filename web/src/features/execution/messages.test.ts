import { expect, it } from "vitest";
import { messagesIn, otherInput } from "./messages";

it("lists the messages of a step in the order in which the model receives them", () => {
  const messages = [{ role: "user", content: "Hello" }, { role: "assistant", content: "Hi" }, "odd"];
  expect(messagesIn({ prompt: "Go on", system: "Be terse", messages, item: 1 })).toEqual([
    { role: "system", content: "Be terse" },
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi" },
    { role: "user", content: "Go on" },
  ]);
});

it("finds none in the input of other steps, and keeps what is no message", () => {
  expect(messagesIn({ expression: "1" })).toEqual([]);
  expect(messagesIn(null)).toEqual([]);
  expect(otherInput({ prompt: "x", item: 1 })).toEqual({ item: 1 });
  expect(otherInput({ prompt: "x" })).toBeNull();
});
