/** Split a proposal into parts, and determine which parts depend on each other. */
import type { Definition } from "@/api/views";
import { applyOperation, type Operation } from "@/features/editor/document/operations";
import { clashOf } from "@/features/editor/document/rebase";

/** Changes of several fields become one part per field; both ends of an edge change together. */
export function partsOf(changes: readonly Operation[]): Operation[] {
  return changes.flatMap((one) => {
    if (one.op !== "change_node" && one.op !== "change_workflow") return [one];
    const { set, remove, ...about } = one;
    return [
      ...(remove ?? []).map((pointer): Operation => ({ ...about, remove: [pointer] })),
      ...Object.entries(set ?? {}).map(([pointer, value]): Operation => ({ ...about, set: { [pointer]: value } })),
    ];
  });
}

export interface AcceptedParts {
  accepted: Operation[];
  /** Parts that were not refused but do not apply without a refused part. */
  dropped: ReadonlySet<number>;
}

/** Return the operations that remain when the parts at these positions are refused. */
export function acceptedParts(
  before: Definition,
  parts: readonly Operation[],
  refused: ReadonlySet<number>,
): AcceptedParts {
  const accepted: Operation[] = [];
  const dropped = new Set<number>();
  let shown = before;
  parts.forEach((part, at) => {
    if (refused.has(at)) return;
    if (isApplicable(part, shown)) {
      accepted.push(part);
      shown = applyOperation(shown, part);
    } else dropped.add(at);
  });
  return { accepted, dropped };
}

function isApplicable(part: Operation, shown: Definition): boolean {
  if (clashOf(part, shown) !== null) return false;
  if (part.op !== "change_edge") return true;
  const ends = [part.set?.["/source"], part.set?.["/target"]].filter((one) => typeof one === "string");
  return ends.every((id) => id === "END" || shown.nodes.some((node) => node.id === id));
}

/** The node or edge that a part concerns, if any, and the changed field, if it is a single one. */
export function aboutOf(part: Operation): { name: string; field: string } {
  const field = "set" in part || "remove" in part ? fieldOf(part.set, part.remove) : "";
  switch (part.op) {
    case "add_node":
      return { name: part.node.id, field };
    case "remove_node":
    case "change_node":
    case "rename_node":
      return { name: part.node, field };
    case "connect":
      return { name: `${part.edge.source} → ${part.edge.target}`, field };
    case "disconnect":
    case "change_edge":
      return { name: part.edge.replace("->", " → "), field };
    default:
      return { name: "", field };
  }
}

function fieldOf(set: object | undefined, remove: readonly string[] | undefined): string {
  const pointers = [...Object.keys(set ?? {}), ...(remove ?? [])];
  return pointers.map((one) => one.slice(one.lastIndexOf("/") + 1).replaceAll("~1", "/")).join(", ");
}
