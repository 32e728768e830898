import { describe, expect, it } from "vitest";
import { canSave, type Document, sharedIds } from "./documents";

function document(id: string | null, ok = true, revision: number | null = null): Document {
  const checked = { ok, id, revision, dialect: "native", problems: [] };
  return { name: `${id}.yaml`, text: "", checked, saved: null, failed: null };
}

describe("imported documents", () => {
  it("are saved without errors, and as drafts if the user chooses so", () => {
    expect(canSave(document("a"), false)).toBe(true);
    expect(canSave(document("a", false), false)).toBe(false);
    expect(canSave(document("a", false), true)).toBe(true);
  });

  it("are not saved twice, before the check, or without an id", () => {
    expect(canSave({ ...document("a"), saved: { id: "a", revision: 1 } }, true)).toBe(false);
    expect(canSave({ ...document("a"), checked: null }, true)).toBe(false);
    expect(canSave(document(null, false), true)).toBe(false);
  });

  it("report ids that they share", () => {
    expect(sharedIds([document("a"), document("b"), document("a"), document(null), document("a")])).toEqual(["a"]);
    expect(sharedIds([document(null), document(null)])).toEqual([]);
  });
});
