import { describe, expect, it } from "vitest";
import { choices, holders, isAssignedTo, mayAnswer } from "./assignees";

const ada = { name: "ada", role: "operator" as const, groups: ["desk"] };

describe("assignees", () => {
  it("matches by name, by group, or anyone", () => {
    const named = { users: ["ada"], groups: [] };
    const group = { users: [], groups: ["desk", "night"] };
    const anyone = { users: ["*"], groups: [] };
    const ben = { users: ["ben"], groups: ["night"] };
    const all = [named, group, anyone, ben];
    expect(all.filter((one) => isAssignedTo("mine", one, ada))).toEqual([named]);
    expect(all.filter((one) => isAssignedTo("ours", one, ada))).toEqual([group]);
    expect(all.filter((one) => isAssignedTo("anyone", one, ada))).toEqual([anyone]);
    expect(all.filter((one) => isAssignedTo("you", one, ada))).toEqual(all);
  });

  it("offers the filters that apply to the user", () => {
    expect(choices(ada)).toEqual(["you", "mine", "ours", "anyone"]);
    expect(choices({ ...ada, groups: [] })).toEqual(["you", "mine", "anyone"]);
    expect(choices({ role: "admin", groups: [] })).toContain("every");
  });
});

describe("right to answer", () => {
  const asks = (users: string[], groups: string[] = [], delegated: Record<string, string> = {}) => ({
    approvers: { quorum: 1, rejectQuorum: 1, users, groups, delegable: true },
    delegated,
  });
  const may = (gate: Parameters<typeof mayAnswer>[0], name: string, ...groups: string[]) =>
    mayAnswer(gate, { name, groups });

  it("belongs to anyone if nobody is named", () => {
    expect(may({ approvers: null, delegated: {} }, "eve")).toBe(true);
    expect(may(asks([]), "eve")).toBe(true);
  });

  it("belongs to named persons and members of named groups", () => {
    expect(may(asks(["ada"]), "ada")).toBe(true);
    expect(may(asks(["ada"]), "eve", "desk")).toBe(false);
    expect(may(asks([], ["desk"]), "eve", "desk")).toBe(true);
  });

  it("moves with a delegation", () => {
    const passed = asks(["ada"], ["desk"], { ada: "ben", ben: "cyd" });
    expect(["ada", "ben", "cyd"].map((name) => may(passed, name, "desk"))).toEqual([false, false, true]);
    expect(holders(passed)).toEqual({ users: ["cyd"], groups: ["desk"] });
    expect(may(asks(["ada"], [], { ben: "ada" }), "ada"), "it came back").toBe(true);
  });
});
