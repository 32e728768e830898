/** The draft of an answer to a gate, and the data that each action sends. */
import type { Gate, GateOption, Json, JsonObject } from "@/api/views";
import { isObject } from "@/values/changes";
import { callsAt, type Decisions, decisionsIn, isDecided, resultsOf, verdictsOn } from "./calls";

export interface DraftAnswer {
  comment: string;
  form: Json;
  /** Changed fields, as text. */
  edits: Readonly<Record<string, string>>;
  decisions: Decisions;
}

export const EMPTY_DRAFT: DraftAnswer = { comment: "", form: {}, edits: {}, decisions: {} };

export function isDraftFilled({ comment, form, edits, decisions }: DraftAnswer): boolean {
  const isFilled = isObject(form) ? Object.keys(form).length > 0 : form !== null;
  return comment !== "" || isFilled || Object.keys(edits).length + Object.keys(decisions).length > 0;
}

export function asText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

export function mayEdit(gate: Pick<Gate, "editable" | "options">): boolean {
  return gate.editable.length > 0 && hasOption(gate, "edit");
}

export function hasOption(gate: Pick<Gate, "options">, action: string): boolean {
  return gate.options.some((option: GateOption) => option.value === action);
}

/** Return whether an action is disabled: the draft contains data that this action would drop or the server would
 * reject. */
export function isDisabled(gate: Gate, action: string, draft: DraftAnswer): boolean {
  const calls = callsAt(gate);
  if (gate.about === "client") return action === "return" && resultsOf(calls, draft.decisions) === null;
  if (gate.about === "calls") {
    const decided = isDecided(calls, draft.decisions);
    if (action === "edit") return !decided || verdictsOn(calls, draft.decisions) === null;
    return action !== "reject" && decided;
  }
  const hasEdits = Object.keys(draft.edits).length > 0;
  if (action === "edit" && mayEdit(gate)) return !hasEdits && !gate.votes.some((vote) => vote.action === "edit");
  return hasEdits && action !== "reject";
}

/** The data that an action sends, apart from a form; null if none. */
export function dataOf(gate: Gate, action: string, draft: DraftAnswer): Json {
  const calls = callsAt(gate);
  if (gate.about === "client") return action === "return" ? resultsOf(calls, draft.decisions) : null;
  if (gate.about === "calls") return action === "edit" ? verdictsOn(calls, draft.decisions) : null;
  if (action !== "edit") return null;
  const found = parsedEdits(gate, draft);
  if (Object.keys(found).length > 0) return found;
  return gate.votes.find((vote) => vote.action === "edit")?.data ?? null; // The vote that the page shows.
}

/** The shown data and the editable fields. */
export function shownData(gate: Gate): JsonObject {
  return { ...(isObject(gate.shown) ? gate.shown : {}), ...(mayEdit(gate) ? gate.values : {}) };
}

/** The shown data with the draft's changes. */
export function withEdits(gate: Gate, draft: DraftAnswer): Json {
  return { ...shownData(gate), ...parsedEdits(gate, { ...draft, form: null }) };
}

/** Copy the data of another vote into the draft. */
export function withVoteData(gate: Gate, data: Json, draft: DraftAnswer): DraftAnswer {
  if (gate.about === "calls") return { ...draft, decisions: decisionsIn(callsAt(gate), data) };
  if (!isObject(data)) return draft;
  const edits = Object.entries(data).filter(([path]) => gate.editable.includes(path));
  const form = Object.entries(data).filter(([path]) => !gate.editable.includes(path));
  return {
    ...draft,
    edits: Object.fromEntries(edits.map(([path, value]) => [path, asText(value ?? null)])),
    form: gate.form === null ? draft.form : Object.fromEntries(form),
  };
}

/** The changed editable fields with their original types: text stays text, anything else is parsed as JSON. */
function parsedEdits(gate: Gate, { form, edits }: DraftAnswer): JsonObject {
  const filled = Object.entries(isObject(form) ? form : {}).filter(([path]) => gate.editable.includes(path));
  const found: JsonObject = Object.fromEntries(filled);
  const shown = shownData(gate);
  for (const [path, text] of Object.entries(edits)) {
    if (typeof shown[path] === "string") found[path] = text;
    else {
      try {
        found[path] = JSON.parse(text) as Json;
      } catch {
        found[path] = text;
      }
    }
  }
  return found;
}
