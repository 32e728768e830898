/**
 * Outcomes of a node: the answers that an edge can follow, and the exits after errors and time-outs. Each outcome is a
 * port of the box, and the source handle of the edges that follow it.
 */
import type { Definition, DefinitionEdge, DefinitionNode, Json, JsonObject } from "@/api/views";
import { isObject } from "@/values/changes";

export type OutcomeKind = "answer" | "default" | "timeout" | "error" | "other";

export interface Outcome {
  /** Id of the port: `answer:<label>`, or the kind. */
  id: string;
  kind: OutcomeKind;
  /** The label that the node emits; empty for other kinds. */
  label: string;
}

/** Standard answers of a person, if the node names none. */
const ACTIONS = ["approve", "reject"];
const VERDICTS = ["pass", "retry", "fail"];
/** Codes of the failures after a time-out. */
const TIMEOUT_CODES: Readonly<Record<string, readonly string[]>> = {
  human: ["gate-timeout"],
  join: ["join-timeout"],
  wait: ["wait-timeout"],
  agent: ["timeout", "model-timeout"],
  tool: ["timeout", "tool-timeout"],
};
const CANNOT_FAIL = new Set(["start", "end", "note"]);
const COMPARISON = /[=!<>]=|[<>]|\bnot\b|\bin\b|\bis\b|^\s*(true|false)\s*$/i;

export const answerOutcome = (label: string): Outcome => ({ id: `answer:${label}`, kind: "answer", label });
const kindOutcome = (kind: Exclude<OutcomeKind, "answer">): Outcome => ({ id: kind, kind, label: "" });

/** The answers among which a node chooses; null if it does not choose, or if they are not known before it runs. */
export function answersOf(node: DefinitionNode, { nodes, edges }: Definition): string[] | null {
  const config = node.config ?? {};
  switch (node.type) {
    case "human":
    case "checkpoint": {
      const options = textsIn(config.options, "value");
      if (options.length > 0) return options;
      const actions = textsIn(config.actions, "value");
      return actions.length > 0 ? actions : ACTIONS;
    }
    case "decision":
    case "conditional":
      return decided(config);
    case "tool_executor": {
      const callers = new Set(edges.filter((edge) => edge.target === node.id).map((edge) => edge.source));
      const tools = nodes.filter((one) => callers.has(one.id)).map((one) => textsIn(one.config?.tools, "name"));
      return tools.length > 0 && tools.every((some) => some.length > 0) ? [...new Set(tools.flat())] : null;
    }
    case "verifier":
      return VERDICTS;
    case "agent":
    case "prompt": {
      const next = propertyOf(config.outputSchema, "properties", "next", "enum");
      return Array.isArray(next) ? textsIn(next, "") : null;
    }
    default:
      return null;
  }
}

function decided(config: JsonObject): string[] | null {
  const rest = typeof config.default === "string" ? [config.default] : [];
  const listed = [...textsIn(config.cases, "label"), ...textsIn(config.choices, "label")];
  if (listed.length > 0) return [...new Set([...listed, ...rest])];
  if (typeof config.expression !== "string" || !COMPARISON.test(config.expression)) return null;
  return [...new Set(["true", "false", ...rest])];
}

/** Texts of a list, whose elements are texts or objects that hold the text under `key`. */
function textsIn(list: Json | undefined, key: string): string[] {
  const all = Array.isArray(list) ? list : [];
  return all.map((one) => (isObject(one) ? one[key] : one)).filter((one): one is string => typeof one === "string");
}

function propertyOf(value: Json | undefined, ...path: string[]): Json | undefined {
  let found = value;
  for (const key of path) found = isObject(found) ? found[key] : undefined;
  return found;
}

/** Whether the node waits for a label on edges without a condition that have a caption. */
const routesByLabel = (node: DefinitionNode) =>
  node.routing === "label" || (!node.routing && ["human", "tool_executor", "verifier"].includes(node.type));

/** The outcome that an edge follows. */
export function outcomeOf(edge: DefinitionEdge, source: DefinitionNode): Outcome {
  const { condition } = edge;
  if (!condition || condition.type === "always")
    return !condition && typeof edge.label === "string" && edge.label && routesByLabel(source)
      ? answerOutcome(edge.label)
      : kindOutcome("other");
  if (condition.type === "label") return answerOutcome(String(condition.label ?? ""));
  if (condition.type === "default") return kindOutcome("default");
  if (condition.type !== "error") return kindOutcome("other");
  const codes = textsIn(condition.codes, "");
  const timeouts = timeoutCodes(source);
  return kindOutcome(codes.length > 0 && codes.every((one) => timeouts.includes(one)) ? "timeout" : "error");
}

const timeoutCodes = (node: DefinitionNode): readonly string[] => TIMEOUT_CODES[node.type] ?? ["timeout"];

/** The condition of an edge that follows an outcome; undefined: it has none. */
export function conditionFor(outcome: Outcome, source: DefinitionNode): JsonObject | undefined {
  switch (outcome.kind) {
    case "answer":
      return { type: "label", label: outcome.label };
    case "default":
      return { type: "default" };
    case "error":
      return { type: "error" };
    case "timeout":
      return { type: "error", codes: [...timeoutCodes(source)] };
    case "other":
      return undefined;
  }
}

/** All outcomes that an edge of the node can follow; `answers` as known, else those that its edges follow already. */
export function outcomesOf(node: DefinitionNode, definition: Definition): Outcome[] {
  const known = answersOf(node, definition)?.map(answerOutcome) ?? [];
  const followed = outgoing(node, definition).filter((one) => one.kind === "answer");
  const answers = unique([...known, ...followed]);
  const exits = CANNOT_FAIL.has(node.type) ? [] : [kindOutcome("timeout"), kindOutcome("error")];
  if (answers.length === 0) return [kindOutcome("other"), kindOutcome("default"), ...exits];
  const isAlways = node.type === "agent" || outgoing(node, definition).some((one) => one.kind === "other");
  return [...answers, kindOutcome("default"), ...exits, ...(isAlways ? [kindOutcome("other")] : [])];
}

/** Whether the node chooses among answers, so that each new edge must state which one it follows. */
export function choosesAnswer(node: DefinitionNode, definition: Definition): boolean {
  return outcomesOf(node, definition)[0]?.kind === "answer";
}

/** Ports of a box: its answers, and the other outcomes that its edges follow. Empty: one port for everything. */
export function portsOf(node: DefinitionNode, definition: Definition): Outcome[] {
  const followed = outgoing(node, definition);
  const answers = outcomesOf(node, definition).filter((one) => one.kind === "answer");
  if (answers.length === 0 && followed.every((one) => one.kind === "other")) return [];
  const others = outcomesOf(node, definition).filter(
    (one) => one.kind !== "answer" && followed.some((other) => other.id === one.id),
  );
  const plain = answers.length === 0 && !others.some((one) => one.kind === "other") ? [kindOutcome("other")] : [];
  return [...answers, ...plain, ...others];
}

/** Outcomes that edges follow already, with the node to which each leads. */
export function followedOutcomes(node: DefinitionNode, definition: Definition): Map<string, string> {
  return new Map(edgesFrom(node, definition).map((edge) => [outcomeOf(edge, node).id, edge.target]));
}

function outgoing(node: DefinitionNode, definition: Definition): Outcome[] {
  return unique(edgesFrom(node, definition).map((edge) => outcomeOf(edge, node)));
}

const BY_SOURCE = new WeakMap<readonly DefinitionEdge[], Map<string, DefinitionEdge[]>>();

/** Grouped once for each list of edges: a picture asks for all nodes. */
function edgesFrom(node: DefinitionNode, { edges }: Definition): readonly DefinitionEdge[] {
  const known = BY_SOURCE.get(edges) ?? new Map<string, DefinitionEdge[]>();
  if (known.size === 0) for (const edge of edges) known.set(edge.source, [...(known.get(edge.source) ?? []), edge]);
  BY_SOURCE.set(edges, known);
  return known.get(node.id) ?? [];
}

function unique(all: readonly Outcome[]): Outcome[] {
  return [...new Map(all.map((one) => [one.id, one])).values()];
}
