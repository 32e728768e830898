// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Definition } from "@/api/views";
import type { Operation } from "@/features/editor/document/operations";
import { conversationAbout, earlierOf, remember, type Screen } from "./conversation";

const DEFINITION: Definition = { id: "letter", nodes: [{ id: "write", type: "agent" }], edges: [] };
const SCREEN: Screen = { id: "letter", shown: DEFINITION, done: [], revision: 3 };
const ROUND = { round: 1, model: "m", ok: true, answer: "{}", problems: [], usage: {} };
const CHANGE = { op: "change_node", node: "write", set: { "/name": "Writer" } };
const ANSWER = { changes: [CHANGE], new: [], gone: [], rounds: [ROUND] };

function told(...events: [string, unknown][]): Response {
  const text = events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join("");
  return new Response(text, { status: 200, headers: { "content-type": "text/event-stream" } });
}

describe("conversation with the assistant", () => {
  const asked = vi.fn<typeof fetch>();
  let nth = 0;
  const fresh = () => conversationAbout(`letter-${++nth}`);
  beforeEach(() => vi.stubGlobal("fetch", asked));
  afterEach(() => {
    vi.unstubAllGlobals();
    asked.mockReset();
    sessionStorage.clear();
  });

  it("reports rounds as they arrive and then the proposal", async () => {
    asked.mockResolvedValue(told(["round", ROUND], ["done", ANSWER]));
    const talk = fresh();
    await talk.getState().send("Name it.", SCREEN);
    const [one] = talk.getState().exchanges;
    expect([one?.outcome, one?.rounds.length]).toEqual(["proposed", 1]);
    expect(one?.proposal?.changes).toEqual([CHANGE]);
    const [path, how] = asked.mock.calls[0] ?? [];
    expect(path).toBe("/api/workflows/letter/edit");
    expect(new Headers(how?.headers).get("if-match")).toBe('"3-"');
  });

  it("sends earlier exchanges with their outcome, and counts open proposals as refused", async () => {
    const talk = fresh();
    for (const outcome of ["accepted", null] as const) {
      asked.mockResolvedValueOnce(told(["round", ROUND], ["done", ANSWER]));
      await talk.getState().send(`words ${outcome}`, SCREEN);
      if (outcome) talk.getState().recordOutcome(talk.getState().exchanges.at(-1)?.id ?? "", outcome);
    }
    asked.mockResolvedValueOnce(told(["problem", { status: 400, code: "design-failed", detail: "No.", hint: "" }]));
    await talk.getState().send("third", SCREEN);
    const { earlier } = JSON.parse(String(asked.mock.calls[2]?.[1]?.body));
    expect(earlier).toEqual([
      { words: "words accepted", answer: "{}", accepted: true },
      { words: "words null", answer: "{}", accepted: false },
    ]);
    const last = talk.getState().exchanges.at(-1);
    expect([last?.outcome, last?.why?.code]).toEqual(["failed", "design-failed"]);
    expect(earlierOf(talk.getState().exchanges).length).toBe(2);
  });

  it("sends the accepted part of a partly accepted proposal", async () => {
    asked.mockResolvedValue(told(["round", ROUND], ["done", ANSWER]));
    const talk = fresh();
    await talk.getState().send("Name it.", SCREEN);
    const operations = [CHANGE as Operation];
    talk.getState().recordOutcome(talk.getState().exchanges[0]?.id ?? "", "accepted", { operations, taken: 1, all: 3 });
    expect(earlierOf(talk.getState().exchanges)).toEqual([
      { words: "Name it.", answer: JSON.stringify({ operations }), accepted: true },
    ]);
  });

  it("reports the server as away if the stream breaks off", async () => {
    asked.mockResolvedValue(told(["round", ROUND]));
    const talk = fresh();
    await talk.getState().send("x", SCREEN);
    expect(talk.getState().exchanges[0]?.why?.code).toBe("unreachable");
  });

  it("survives a reload and marks a running exchange as stopped", () => {
    sessionStorage.setItem(
      "pointsman.assistant.other",
      JSON.stringify([{ id: "1", words: "x", outcome: "asked", rounds: [], proposal: null, why: null }]),
    );
    expect(conversationAbout("other").getState().exchanges[0]?.outcome).toBe("stopped");
    remember("made", [{ words: "A letter.", rounds: [] }]);
    expect(conversationAbout("made").getState().exchanges[0]?.outcome).toBe("accepted");
  });
});
