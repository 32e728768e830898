/** What a node brought, kept under a name: one of its outputs is `result`. */
import type { DefinitionNode, Json, JsonObject } from "@/api/views";
import { objectOf } from "./shapes";

/** Types that bring something that later nodes may want to read. */
export const BRINGS: ReadonlySet<string> = new Set([
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

export function keptAs(node: DefinitionNode): string {
  return Object.entries(outputsOf(node)).find(([, formula]) => formula === WHOLE)?.[0] ?? "";
}

/** The outputs with that name instead; the others stay. Another output's name is not taken from it. */
export function keptUnder(node: DefinitionNode, name: string): JsonObject | undefined {
  const before = keptAs(node);
  const outputs = outputsOf(node);
  if (name !== before && name in outputs) return outputs;
  const rest = Object.entries(outputs).filter(([one]) => one !== before);
  const entries = name ? [[name, WHOLE] as const, ...rest] : rest;
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

function outputsOf(node: DefinitionNode): JsonObject {
  return objectOf(node.outputs as Json | undefined);
}
