/** Tool calls in a gate: the decisions on them, or their results, and both in the API's form. */
import type { Gate, Json, JsonObject } from "@/api/views";
import { changesIn, isObject } from "@/values/changes";

export interface ProposedCall {
  /** The key under which the answer names the call. */
  number: string;
  tool: string;
  arguments: Json;
}

export const CHOICES = ["make", "change", "reject"] as const;
export type Choice = (typeof CHOICES)[number];

/** `text` holds the changed arguments, or the result, as typed. */
export interface Decision {
  choice: Choice;
  text: string;
}

/** Decisions by call number; calls without an entry are run unchanged. */
export type Decisions = Readonly<Record<string, Decision>>;

export function callsAt(gate: Pick<Gate, "about" | "shown">): ProposedCall[] {
  if ((gate.about !== "calls" && gate.about !== "client") || !isObject(gate.shown)) return [];
  return Object.entries(gate.shown).map(([number, call]) => {
    const parsedCall: JsonObject = isObject(call) ? call : {};
    return { number, tool: String(parsedCall.tool ?? ""), arguments: parsedCall.arguments ?? null };
  });
}

export function decisionOn(call: ProposedCall, decisions: Decisions): Decision {
  return decisions[call.number] ?? { choice: "make", text: JSON.stringify(call.arguments, null, 2) };
}

/** Parse arguments; null if they are not a JSON object. */
export function argumentsIn(text: string): JsonObject | null {
  try {
    const found = JSON.parse(text) as Json;
    return isObject(found) ? found : null;
  } catch {
    return null;
  }
}

/** The verdict on each call by number: true (run), false (reject), or changed arguments. Null if some arguments are
 * invalid. */
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

/** Return whether any call is changed or rejected. */
export function isDecided(calls: readonly ProposedCall[], decisions: Decisions): boolean {
  return calls.some((call) => decisionOn(call, decisions).choice !== "make");
}

/** Convert the data of another vote to decisions. */
export function decisionsIn(calls: readonly ProposedCall[], data: Json): Decisions {
  if (!isObject(data)) return {};
  const found: Record<string, Decision> = {};
  for (const { number } of calls) {
    const verdict = data[number];
    if (verdict === false) found[number] = { choice: "reject", text: "" };
    else if (isObject(verdict)) found[number] = { choice: "change", text: JSON.stringify(verdict, null, 2) };
  }
  return found;
}

/** The result of each call: parsed if it is JSON, otherwise text. Null if one is missing. */
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
