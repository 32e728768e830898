import { describe, expect, it } from "vitest";
import { callsAt, decisionsIn, isDecided, resultsOf, verdictsOn } from "./calls";

const shown = {
  "2": { tool: "transfer", arguments: { to: "ada", amount: 5 } },
  "10": { tool: "transfer", arguments: { to: "ben", amount: 7 } },
};
const calls = callsAt({ about: "calls", shown });

describe("tool calls in a gate", () => {
  it("are listed in order at gates about calls", () => {
    expect(calls.map((call) => [call.number, call.tool])).toEqual([
      ["2", "transfer"],
      ["10", "transfer"],
    ]);
    expect(callsAt({ about: "node", shown })).toEqual([]);
    expect(callsAt({ about: "calls", shown: "a text" })).toEqual([]);
  });

  it("are each run, changed or rejected", () => {
    expect(isDecided(calls, {})).toBe(false);
    const decisions = {
      "2": { choice: "reject", text: "" },
      "10": { choice: "change", text: '{"to": "ben", "amount": 1}' },
    } as const;
    expect(isDecided(calls, decisions)).toBe(true);
    expect(verdictsOn(calls, decisions)).toEqual({ "2": false, "10": { to: "ben", amount: 1 } });
    expect(verdictsOn(calls, { "2": { choice: "reject", text: "" } })).toEqual({ "2": false, "10": true });
  });

  it("are run unchanged if the arguments are the same after all", () => {
    const same = { "2": { choice: "change", text: '{"amount":5,"to":"ada"}' } } as const;
    expect(verdictsOn(calls, same)).toEqual({ "2": true, "10": true });
  });

  it("have no verdicts while arguments are invalid", () => {
    for (const text of ["", "{", "5", "[1]", "null"])
      expect(verdictsOn(calls, { "10": { choice: "change", text } })).toBeNull();
  });

  it("take over the decisions of another voter", () => {
    const said = { "2": false, "10": { to: "ben", amount: 1 } };
    expect(verdictsOn(calls, decisionsIn(calls, said))).toEqual(said);
    expect(decisionsIn(calls, null)).toEqual({});
  });

  it("have results as JSON or text, one for each call", () => {
    const result = (text: string) => ({ choice: "make" as const, text });
    expect(resultsOf(calls, { "2": result("paid") })).toBeNull();
    expect(resultsOf(calls, { "2": result("paid"), "10": result(" ") })).toBeNull();
    expect(resultsOf(calls, { "2": result("paid"), "10": result('{"ok": true}') })).toEqual({
      "2": "paid",
      "10": { ok: true },
    });
  });
});
