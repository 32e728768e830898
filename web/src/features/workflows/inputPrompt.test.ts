import { expect, it } from "vitest";
import { translatedInput } from "./inputPrompt";

it("translates titles and descriptions of fields and nothing else", () => {
  const words: Record<string, string> = { Items: "Einträge", "What to do.": "Was zu tun ist." };
  const schema = {
    type: "object",
    required: ["items"],
    properties: { items: { type: "array", minItems: 1, title: "Items", description: "What to do." }, title: {} },
  };
  expect(translatedInput(schema, (sentence) => words[sentence] ?? sentence)).toEqual({
    ...schema,
    properties: { items: { type: "array", minItems: 1, title: "Einträge", description: "Was zu tun ist." }, title: {} },
  });
});
