/** Rebase changes made on one revision onto another one; changes that no longer apply are reported and dropped. */

import type { Definition } from "@/api/views";
import { changesBetween } from "@/graph/model/diff";
import { edgeNames } from "@/graph/model/edgeNames";
import { applyEffective, type Operation } from "./operations";

/**
 * `both`: both sides changed the field, and the local change wins. `gone`: the element was removed. `taken`: the id
 * exists already.
 */
export interface Clash {
  why: "both" | "gone" | "taken";
  /** The node or edge, and the field if the conflict concerns one. */
  about: string;
}

export interface RebaseResult {
  done: Operation[][];
  clashes: Clash[];
}

export function rebase(
  done: readonly (readonly Operation[])[],
  base: Definition | null,
  theirs: Definition,
): RebaseResult {
  const changed = base === null ? new Set<string>() : changedFields(base, theirs);
  const clashes: Clash[] = [];
  const remaining: Operation[][] = [];
  let shown = theirs;
  for (const act of done) {
    const fits: Operation[] = [];
    for (const one of act) {
      const clash = clashOf(one, shown);
      if (clash) {
        clashes.push(clash);
        continue;
      }
      clashes.push(
        ...fieldsOfChange(one).flatMap((about) => (changed.has(about) ? [{ why: "both" as const, about }] : [])),
      );
      const after = applyEffective(shown, [one]);
      fits.push(...after.made);
      shown = after.shown;
    }
    if (fits.length > 0) remaining.push(fits);
  }
  const unique = new Map(clashes.map((one) => [`${one.why} ${one.about}`, one]));
  return { done: remaining, clashes: [...unique.values()] };
}

/** The text typed last; it replaces any newer revision. */
export function typedText(done: readonly (readonly Operation[])[]): string | null {
  const last = done.flat().findLast((one) => one.op === "replace_text");
  return last?.op === "replace_text" ? last.text : null;
}

/** The changes made on the canvas and in forms, without typed text. */
export function withoutTypedText(done: readonly Operation[][]): Operation[][] {
  return done.map((act) => act.filter((one) => one.op !== "replace_text")).filter((act) => act.length > 0);
}

/** The reason why a change does not apply to a definition; null if it applies. */
export function clashOf(change: Operation, shown: Definition): Clash | null {
  const hasNode = (id: string) => shown.nodes.some((node) => node.id === id);
  const gone = (about: string): Clash => ({ why: "gone", about });
  switch (change.op) {
    case "add_node":
      return hasNode(change.node.id) ? { why: "taken", about: change.node.id } : null;
    case "remove_node":
    case "change_node":
      return hasNode(change.node) ? null : gone(change.node);
    case "connect": {
      const { source, target } = change.edge;
      return hasNode(source) && (target === "END" || hasNode(target)) ? null : gone(`${source}->${target}`);
    }
    case "disconnect":
    case "change_edge":
      return edgeNames(shown.edges).includes(change.edge) ? null : gone(change.edge);
    case "rename_node":
      if (!hasNode(change.node)) return gone(change.node);
      return hasNode(change.to) ? { why: "taken", about: change.to } : null;
    case "order_nodes":
      return hasAll(
        change.nodes,
        shown.nodes.map((node) => node.id),
      )
        ? null
        : gone("order");
    case "order_edges":
      return hasAll(change.edges, edgeNames(shown.edges)) ? null : gone("order");
    default:
      return null;
  }
}

function hasAll(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name) => other.includes(name));
}

/** Fields that the other side changed, as `write: config.prompt`. */
function changedFields(base: Definition, theirs: Definition): Set<string> {
  const found = changesBetween(base, theirs).filter((one) => one.mark === "changed");
  return new Set(found.flatMap((one) => one.fields.map((field) => fieldName(one.kind, one.id, field.path))));
}

function fieldsOfChange(change: Operation): string[] {
  if (change.op !== "change_node" && change.op !== "change_edge" && change.op !== "change_workflow") return [];
  const [kind, id] =
    change.op === "change_node"
      ? ["node", change.node]
      : change.op === "change_edge"
        ? ["edge", change.edge]
        : ["workflow", ""];
  const pointers = [...Object.keys(change.set ?? {}), ...(change.remove ?? [])];
  return pointers.map((pointer) => fieldName(kind as "node", id as string, pointer.slice(1).replaceAll("/", ".")));
}

function fieldName(kind: "node" | "edge" | "workflow", id: string, place: string): string {
  return kind === "workflow" ? place : `${id}: ${place}`;
}
