import type { TFunction } from "i18next";
import { describe, expect, it } from "vitest";
import type { DefinitionNode, JsonObject } from "@/api/views";
import { pictureOf } from "./picture";

const GERMAN: Record<string, string> = {
  "action.approve": "Freigeben",
  "arrow.default": "sonst",
  "arrow.error": "Fehler",
  "arrow.true": "ja",
  "arrow.false": "nein",
};
const t = ((key: string, otherwise?: string) => GERMAN[key] ?? otherwise ?? key) as TFunction;

const ask: DefinitionNode = {
  id: "ask",
  type: "human",
  config: { options: [{ value: "approve" }, { value: "again", label: { en: "Once more", de: "Noch einmal" } }] },
};

function wordsOn(source: DefinitionNode, ...conditions: JsonObject[]): string[] {
  const edges = conditions.map((condition) => ({ source: source.id, target: "next", condition }));
  const nodes = [source, { id: "next", type: "end" }];
  return pictureOf({ id: "w", nodes, edges }, "de", t).arrows.map((one) => one.label);
}

describe("the label of an arrow", () => {
  it("shows an answer as the person who answers sees it", () => {
    const labels = ["approve", "again", "late"].map((label) => ({ type: "label", label }));
    expect(wordsOn(ask, ...labels)).toEqual(["Freigeben", "Noch einmal", "late"]);
    expect(wordsOn({ id: "choose", type: "decision" }, ...labels)).toEqual(["approve", "again", "late"]);
  });

  it("shows yes and no for a decision with an expression", () => {
    const labels = ["true", "false"].map((label) => ({ type: "label", label }));
    expect(wordsOn({ id: "choose", type: "decision" }, ...labels)).toEqual(["ja", "nein"]);
    expect(wordsOn({ id: "choose", type: "agent" }, ...labels)).toEqual(["true", "false"]);
  });

  it("describes its condition in the language of the page", () => {
    expect(wordsOn(ask, { type: "default" }, { type: "error", codes: ["timeout"] })).toEqual([
      "sonst",
      "Fehler timeout",
    ]);
  });
});

it("puts the entry node first, even if an arrow leads back to it", () => {
  const nodes = ["b", "a"].map((id) => ({ id, type: "agent" }));
  const edges = [
    { source: "a", target: "b" },
    { source: "b", target: "a" },
  ];
  expect(pictureOf({ id: "w", entry: "a", nodes, edges }, "en", t).boxes.map((box) => box.id)).toEqual(["a", "b"]);
});
