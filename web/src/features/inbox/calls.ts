/** Calls of tools that a gate asks about: what is decided on each, or what came of it, and how both are said to the server. */
import type { Gate, Json, JsonObject } from "@/api/views";
import { changesIn, isObject } from "@/values/changes";

export interface ProposedCall {
  /** By which it is answered. */
  number: string;
  tool: string;
  arguments: Json;
}

export const CHOICES = ["make", "change", "reject"] as const;
export type Choice = (typeof CHOICES)[number];

/** `text`: the other arguments, or the result, as it is written. */
export interface Decision {
  choice: Choice;
  text: string;
}

/** By the numbers of calls; a call that is not in it is made. */
export type Decisions = Readonly<Record<string, Decision>>;

export function callsAt(gate: Pick<Gate, "about" | "shown">): ProposedCall[] {
  if ((gate.about !== "calls" && gate.about !== "client") || !isObject(gate.shown)) return [];
  return Object.entries(gate.shown).map(([number, call]) => {
    const told: JsonObject = isObject(call) ? call : {};
    return { number, tool: String(told.tool ?? ""), arguments: told.arguments ?? null };
  });
}

export function decisionOn(call: ProposedCall, decisions: Decisions): Decision {
  return decisions[call.number] ?? { choice: "make", text: JSON.stringify(call.arguments, null, 2) };
}

/** Null: it is no object, and calls are made with objects. */
export function argumentsIn(text: string): JsonObject | null {
  try {
    const found = JSON.parse(text) as Json;
    return isObject(found) ? found : null;
  } catch {
    return null;
  }
}

/** Each call by its number: made (true), not (false), or the arguments instead. Null: some cannot be read. */
export function verdictsOn(calls: readonly ProposedCall[], decisions: Decisions): JsonObject | null {
  const found: JsonObject = {};
  for (const call of calls) {
    const { choice, text } = decisionOn(call, decisions);
    const changed = choice === "change" ? argumentsIn(text) : null;
    if (choice === "change" && changed === null) return null;
    found[call.number] = changed === null ? choice === "make" : isSame(changed, call.arguments) ? true : changed;
  }
  return found;
}

/** Whether one of them is to be something else than made as it stands. */
export function isDecided(calls: readonly ProposedCall[], decisions: Decisions): boolean {
  return calls.some((call) => decisionOn(call, decisions).choice !== "make");
}

/** What somebody else decided, to be decided the same. */
export function decisionsIn(calls: readonly ProposedCall[], data: Json): Decisions {
  if (!isObject(data)) return {};
  const found: Record<string, Decision> = {};
  for (const { number } of calls) {
    const said = data[number];
    if (said === false) found[number] = { choice: "reject", text: "" };
    else if (isObject(said)) found[number] = { choice: "change", text: JSON.stringify(said, null, 2) };
  }
  return found;
}

/** What came of each: JSON where it is JSON, else the text. Null: one is not told yet. */
export function resultsOf(calls: readonly ProposedCall[], decisions: Decisions): JsonObject | null {
  const found: JsonObject = {};
  for (const { number } of calls) {
    const text = decisions[number]?.text.trim() ?? "";
    if (!text) return null;
    try {
      found[number] = JSON.parse(text) as Json;
    } catch {
      found[number] = text;
    }
  }
  return found;
}

function isSame(one: Json, other: Json): boolean {
  return changesIn(one, other).length === 0;
}
