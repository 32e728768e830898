/** Name of a node's result: the output whose expression is `result`. */
import type { DefinitionNode, Json, JsonObject } from "@/api/views";
import { objectOf } from "./shapes";

/** Node types with a result that later nodes may read. */
export const HAS_RESULT: ReadonlySet<string> = new Set([
  "agent",
  "prompt",
  "tool",
  "human",
  "checkpoint",
  "join",
  "merge",
  "workflow",
  "http",
  "code",
  "planner",
]);

const WHOLE = "result";

export function resultNameOf(node: DefinitionNode): string {
  return Object.entries(outputsOf(node)).find(([, formula]) => formula === WHOLE)?.[0] ?? "";
}

/** The outputs with a new result name; the others stay. A name used by another output is rejected. */
export function withResultName(node: DefinitionNode, name: string): JsonObject | undefined {
  const before = resultNameOf(node);
  const outputs = outputsOf(node);
  if (name !== before && name in outputs) return outputs;
  const rest = Object.entries(outputs).filter(([one]) => one !== before);
  const entries = name ? [[name, WHOLE] as const, ...rest] : rest;
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

function outputsOf(node: DefinitionNode): JsonObject {
  return objectOf(node.outputs as Json | undefined);
}
