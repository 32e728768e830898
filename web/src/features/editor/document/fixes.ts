/** Convert fixes of problems to operations on the draft. The server sends a JSON Patch of the native document. */

import type { Problem } from "@/api/http";
import type { Definition, DefinitionEdge, DefinitionNode, Json } from "@/api/views";
import { edgeNames } from "@/graph/model/edgeNames";
import { applyOperation, type Operation } from "./operations";

interface PatchStep {
  op: string;
  path: string;
  value?: Json;
}

/** Null if the problem has no fix, or one that does not apply to the definition. */
export function fixOf(problem: Problem, definition: Definition): Operation[] | null {
  if (!Array.isArray(problem.fix) || problem.fix.length === 0) return null;
  const found: Operation[] = [];
  let now = definition;
  for (const step of problem.fix as PatchStep[]) {
    const operation = operationOf(step, now);
    if (!operation) return null;
    found.push(operation);
    now = applyOperation(now, operation);
  }
  return found;
}

/** Fixes of several problems; a fix that no longer applies after the earlier ones is skipped. */
export function fixesOf(problems: readonly Problem[], definition: Definition): Operation[] {
  const found: Operation[] = [];
  let now = definition;
  // From last to first, because removing an element shifts those behind it.
  for (const problem of [...problems].sort((a, b) => placeOf(b) - placeOf(a))) {
    const fix = fixOf(problem, now);
    if (!fix) continue;
    found.push(...fix);
    now = fix.reduce(applyOperation, now);
  }
  return found;
}

function placeOf(problem: Problem): number {
  return Number(/^\/\w+\/(\d+)/.exec(problem.pointer)?.[1] ?? 0);
}

function operationOf(step: PatchStep, definition: Definition): Operation | null {
  const [, list, key = "", ...rest] = step.path.split("/");
  const pointer = rest.map((part) => `/${part}`).join("");
  if (list === "nodes" && key) return nodeOperation(step, definition, key, pointer);
  if (list === "edges" && key) return edgeOperation(step, definition, key, pointer);
  return changes(step, step.path, definition as unknown as Json, (set) => ({ op: "change_workflow", ...set }));
}

function nodeOperation(step: PatchStep, definition: Definition, key: string, pointer: string): Operation | null {
  if (step.op === "add" && pointer === "") return { op: "add_node", node: step.value as unknown as DefinitionNode };
  const node = definition.nodes[Number(key)];
  if (!node) return null;
  if (step.op === "remove" && pointer === "") return { op: "remove_node", node: node.id };
  if (pointer === "") return null;
  return changes(step, pointer, node as unknown as Json, (set) => ({ op: "change_node", node: node.id, ...set }));
}

function edgeOperation(step: PatchStep, definition: Definition, key: string, pointer: string): Operation | null {
  if (step.op === "add" && pointer === "") return { op: "connect", edge: step.value as unknown as DefinitionEdge };
  const edge = definition.edges[Number(key)];
  const name = edgeNames(definition.edges)[Number(key)];
  if (!edge || name === undefined) return null;
  if (step.op === "remove" && pointer === "") return { op: "disconnect", edge: name };
  if (pointer === "") return null;
  return changes(step, pointer, edge as unknown as Json, (set) => ({ op: "change_edge", edge: name, ...set }));
}

type Changes = { set: { [pointer: string]: Json } } | { remove: string[] };

function changes(step: PatchStep, pointer: string, inside: Json, make: (set: Changes) => Operation): Operation | null {
  if (step.op === "remove") return make({ remove: [pointer] });
  if (step.value === undefined || (step.op !== "add" && step.op !== "replace")) return null;
  const [, parent = "", last = ""] = /^(.*)\/([^/]*)$/.exec(pointer) ?? [];
  const list = at(inside, parent);
  // `add` on a list inserts before the existing element instead of replacing it.
  if (step.op === "add" && Array.isArray(list) && last !== "-" && parent !== "")
    return make({ set: { [parent]: list.toSpliced(Number(last), 0, step.value) } });
  return make({ set: { [pointer]: step.value } });
}

function at(value: Json, pointer: string): Json | undefined {
  let found: Json | undefined = value;
  for (const part of pointer.split("/").slice(1)) {
    if (found === null || typeof found !== "object") return undefined;
    found = (found as { [key: string]: Json })[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return found;
}
