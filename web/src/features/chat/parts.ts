/** The parts of a turn that the chat shows: working nodes, their calls and their text. Nodes that only control the flow
 * are left out. */
import type { Definition, DefinitionNode, JournalEvent, Json, JsonObject } from "@/api/views";
import type { ExecutionTimeline, StepRecord, StepStatus } from "@/features/execution/timelineModel";
import type { StepOutput } from "../execution/live";

export interface Call {
  /** Position among the calls of the step: the same for a live call and for the recorded one. */
  id: string;
  tool: string;
  arguments: Json | undefined;
  result: Json | undefined;
  isOpen: boolean;
}

export interface Part {
  step: string;
  node: DefinitionNode;
  status: StepStatus;
  /** Text for the user. For a workflow that is not conversational the output is shown instead. */
  text: string;
  isLive: boolean;
  calls: Call[];
}

/** Control nodes, which the chat does not show. */
const HIDDEN_TYPES: ReadonlySet<string> = new Set(["start", "end", "join", "note"]);

export function isConversational(definition: Definition): boolean {
  return (definition.config as JsonObject | undefined)?.conversational === true;
}

export function isSteerable(definition: Definition): boolean {
  return (definition.config as JsonObject | undefined)?.humanInLoop === "real_time";
}

export function partsOf(
  definition: Definition,
  story: ExecutionTimeline,
  events: readonly JournalEvent[],
  live: { get(step: string): StepOutput | undefined },
): Part[] {
  const shown = new Map(
    definition.nodes
      .filter((node) => node.chatVisible !== false && !HIDDEN_TYPES.has(node.type))
      .map((node) => [node.id, node]),
  );
  const calls = callsOf(events);
  const speaks = isConversational(definition);
  return story.order.flatMap((name) => {
    const step = story.steps.get(name) as StepRecord;
    const node = shown.get(step.node);
    if (!node || step.status === "passed") return [];
    const now = live.get(name);
    const said = textOf(step);
    return {
      step: name,
      node,
      status: step.status,
      text: speaks && node.type === "agent" ? said || (now?.text ?? "") : "",
      isLive: !said && Boolean(now?.text),
      calls: calls.get(name) ?? liveCalls(now),
    };
  });
}

function textOf(step: StepRecord): string {
  const text = step.response?.text;
  if (typeof text === "string") return text.trim();
  return typeof step.result === "string" ? step.result.trim() : "";
}

function liveCalls(live: StepOutput | undefined): Call[] {
  return (live?.calls ?? []).map((call, at) => ({
    id: String(at),
    tool: call.tool,
    arguments: call.arguments,
    result: undefined,
    isOpen: call.ok === undefined,
  }));
}

interface Message {
  role?: string;
  content?: Json;
  toolCalls?: { id: string; name: string; arguments?: Json }[];
  toolCallId?: string;
}

/** Recorded tool calls with results by step, taken from the messages of the step. */
function callsOf(events: readonly JournalEvent[]): Map<string, Call[]> {
  const found = new Map<string, Call[]>();
  const byId = new Map<string, Call>();
  for (const event of events) {
    if (event.kind !== "step_succeeded" || !Array.isArray(event.messages)) continue;
    const own: Call[] = [];
    for (const message of event.messages as Message[]) {
      for (const { id, name, arguments: given } of message.toolCalls ?? []) {
        const place = String(own.length);
        const call: Call = { id: place, tool: name, arguments: given, result: undefined, isOpen: false };
        own.push(call);
        byId.set(id, call);
      }
      const answered = message.role === "tool" ? byId.get(message.toolCallId ?? "") : undefined;
      if (answered) answered.result = message.content ?? null;
    }
    if (own.length > 0) found.set(String(event.step), own);
  }
  return found;
}

/** The user's message: the input itself, or the field of the input that holds it. */
export function messageIn(input: Json, field: string): string {
  if (typeof input === "string") return input;
  const fields = (input ?? {}) as JsonObject;
  const text = fields[field] ?? fields.message ?? fields.goal;
  return typeof text === "string" ? text : JSON.stringify(text ?? input, null, 2);
}

/** The names of the attached files. */
export function filesIn(input: Json): string[] {
  if (input === null || typeof input !== "object") return [];
  return Object.values(input as JsonObject)
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .flatMap((value) => {
      const file = value as { name?: unknown; mediaType?: unknown } | null;
      return file && typeof file === "object" && typeof file.mediaType === "string" ? [String(file.name ?? "")] : [];
    });
}
