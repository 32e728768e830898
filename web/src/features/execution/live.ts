/** What happens inside a step before anything of it is in the journal: words of models, calls of tools. */
import type { Json } from "@/api/views";

export interface LiveCall {
  tool: string;
  arguments: Json | undefined;
  /** Undefined while it is under way. */
  ok: boolean | undefined;
}

export interface Live {
  text: string;
  thought: string;
  calls: LiveCall[];
  /** The tasks of a planner: the one it is at. */
  task: string;
}

/** So much of what is said is shown while it is said. */
const SAID_MAX = 100_000;

interface Delta {
  kind?: string;
  text?: string;
  /** What was said before one listened, and since. */
  soFar?: string;
  tool?: string;
  arguments?: Json;
  ok?: boolean;
  number?: number;
  of?: number;
}

/** Takes one message of the stream in; false where it says nothing. */
export function hear(live: Map<string, Live>, data: string): boolean {
  const told = JSON.parse(data) as { step: string; delta?: Delta };
  const delta = told.delta;
  if (!delta) return false;
  const was = live.get(told.step) ?? { text: "", thought: "", calls: [], task: "" };
  const now = heard(was, delta);
  if (now === was) return false;
  live.set(told.step, now);
  return true;
}

/** Whoever tells of it from now on begins anew: what is said twice would be shown twice. */
export function forgetSaid(live: Map<string, Live>): void {
  for (const [step, was] of live) live.set(step, { ...was, text: "", thought: "" });
}

function heard(was: Live, delta: Delta): Live {
  switch (delta.kind) {
    case "thought":
      return { ...was, thought: (was.thought + (delta.text ?? "")).slice(-SAID_MAX) };
    case "so_far":
      return { ...was, text: (delta.soFar ?? "").slice(-SAID_MAX) };
    case "discarded":
      return { ...was, text: "" };
    case "tool_call":
      return {
        ...was,
        calls: [...was.calls, { tool: delta.tool ?? "", arguments: delta.arguments, ok: undefined }],
      };
    case "tool_result": {
      const at = was.calls.findIndex((call) => call.tool === delta.tool && call.ok === undefined);
      const calls = was.calls.map((call, index) => (index === at ? { ...call, ok: delta.ok } : call));
      return { ...was, calls };
    }
    case "task":
      return { ...was, task: `${delta.number}/${delta.of}` };
    default:
      return delta.text ? { ...was, text: (was.text + delta.text).slice(-SAID_MAX) } : was;
  }
}
