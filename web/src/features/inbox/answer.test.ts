import { expect, it } from "vitest";
import type { Gate } from "@/api/views";
import { dataOf, EMPTY_DRAFT, isDisabled, shownData, withEdits } from "./answer";

const option = (value: string) => ({ value, label: value });
const gate = {
  about: "node",
  options: [option("approve"), option("edit"), option("reject")],
  form: null,
  shown: { topic: "tides" },
  editable: ["letter"],
  values: { letter: "old" },
  votes: [],
} as unknown as Gate;

it("shows the editable fields in addition to the shown data", () => {
  expect(shownData(gate)).toEqual({ topic: "tides", letter: "old" });
  expect(shownData({ ...gate, options: [option("approve")] })).toEqual({ topic: "tides" });
});

it("enables an edit once a field has changed or another voter has edited", () => {
  expect(isDisabled(gate, "edit", EMPTY_DRAFT)).toBe(true);
  expect(isDisabled(gate, "edit", { ...EMPTY_DRAFT, edits: { letter: "new" } })).toBe(false);
  expect(isDisabled({ ...gate, votes: [{ by: "ada", action: "edit", comment: "" }] }, "edit", EMPTY_DRAFT)).toBe(false);
});

it("sends only editable fields with an edit", () => {
  const written = { ...EMPTY_DRAFT, form: { copies: 2 }, edits: { letter: "new" } };
  expect(dataOf(gate, "edit", written)).toEqual({ letter: "new" });
  expect(dataOf(gate, "approve", written)).toBeNull();
  expect(withEdits(gate, written)).toEqual({ topic: "tides", letter: "new" });
});

it("votes for the displayed edit if the user changed nothing", () => {
  const voted = { ...gate, votes: [{ by: "ada", action: "edit", comment: "", data: { letter: "hers" } }] };
  expect(dataOf(voted, "edit", EMPTY_DRAFT)).toEqual({ letter: "hers" });
  expect(dataOf(voted, "approve", EMPTY_DRAFT)).toBeNull();
});
