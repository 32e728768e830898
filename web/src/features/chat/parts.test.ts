import { describe, expect, it } from "vitest";
import type { Definition, JournalEvent } from "@/api/views";
import { timelineOf } from "@/features/execution/timelineModel";
import { splitMention, workflowsToOffer } from "./mention";
import { filesIn, messageIn, partsOf } from "./parts";

const DEFINITION: Definition = {
  id: "talk",
  config: { conversational: true },
  nodes: [
    { id: "router", type: "agent" },
    { id: "inner", type: "agent", chatVisible: false },
    { id: "end", type: "end" },
  ],
  edges: [],
};

function event(seq: number, kind: string, more: object = {}): JournalEvent {
  return { seq, n: 0, at: seq, kind, ...more };
}

const CALLED = [
  { role: "assistant", content: "", toolCalls: [{ id: "c1", name: "search", arguments: { q: "ports" } }] },
  { role: "tool", content: "two", toolCallId: "c1" },
];
const EVENTS = [
  event(1, "started"),
  event(2, "step_started", { step: "inner:1", node: "inner" }),
  event(3, "step_succeeded", { step: "inner:1", node: "inner", result: "a secret" }),
  event(4, "step_started", { step: "router:1", node: "router" }),
  event(5, "step_succeeded", { step: "router:1", node: "router", result: "Two ships.", messages: CALLED }),
  event(6, "step_started", { step: "end:1", node: "end" }),
];

describe("parts of a turn", () => {
  it("contain the text and calls of visible nodes", () => {
    const parts = partsOf(DEFINITION, timelineOf(EVENTS), EVENTS, new Map());
    expect(parts.map((part) => [part.node.id, part.text])).toEqual([["router", "Two ships."]]);
    expect(parts[0]?.calls).toEqual([
      { id: "0", tool: "search", arguments: { q: "ports" }, result: "two", isOpen: false },
    ]);
  });

  it("keep the position of a call when it ends, so that it stays expanded", () => {
    const calls = [{ tool: "search", arguments: undefined, ok: undefined }];
    const live = new Map([["router:1", { text: "", thought: "", calls, task: "" }]]);
    const before = partsOf(DEFINITION, timelineOf(EVENTS.slice(0, 4)), EVENTS.slice(0, 4), live);
    const after = partsOf(DEFINITION, timelineOf(EVENTS), EVENTS, new Map());
    expect(before[0]?.calls.map((call) => call.id)).toEqual(after[0]?.calls.map((call) => call.id));
  });

  it("show streaming text and running calls", () => {
    const begun = EVENTS.slice(0, 4);
    const calls = [{ tool: "search", arguments: undefined, ok: undefined }];
    const live = new Map([["router:1", { text: "Two sh", thought: "", calls, task: "" }]]);
    const [part] = partsOf(DEFINITION, timelineOf(begun), begun, live);
    expect([part?.text, part?.isLive, part?.calls[0]?.isOpen]).toEqual(["Two sh", true, true]);
  });

  it("leave the text to the output if the workflow is not conversational", () => {
    const plain = { ...DEFINITION, config: {} };
    expect(partsOf(plain, timelineOf(EVENTS), EVENTS, new Map())[0]?.text).toBe("");
  });

  it("start with the user's message and files", () => {
    expect(messageIn({ goal: "tides" }, "goal")).toBe("tides");
    expect(messageIn("tides", "goal")).toBe("tides");
    expect(filesIn({ q: "x", picture: { data: "", mediaType: "image/png", name: "a.png" } })).toEqual(["a.png"]);
  });
});

describe("mention", () => {
  const one = { id: "letter", name: "Briefe", description: null, conversational: false, field: "goal", files: [] };
  it("offers workflows while it is typed", () => {
    expect(workflowsToOffer("@", [one], "en")).toEqual([one]);
    expect(workflowsToOffer("@brie", [one], "en")).toEqual([one]);
    expect(workflowsToOffer("@none", [one], "en")).toEqual([]);
    expect(workflowsToOffer("a @", [one], "en")).toBeNull();
    expect(workflowsToOffer("@letter now", [one], "en")).toBeNull();
  });
  it("determines the addressed workflow", () => {
    expect(splitMention("@letter about tides", [one])).toEqual({ workflow: one, text: "about tides" });
    expect(splitMention("@nobody hello", [one])).toEqual({ workflow: null, text: "@nobody hello" });
    expect(splitMention(" hello ", [one])).toEqual({ workflow: null, text: "hello" });
  });
});
