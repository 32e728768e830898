/** Describe changes of the document for screen readers. */
import type { Definition } from "@/api/views";
import { textIn } from "@/i18n";
import { edgeNamed, type Positions } from "./edits";
import type { Operation } from "./operations";

/** `word` is the key `editDescription.<word>`. Typed text has no description. */
export interface DescribedChange {
  word: string;
  values: Record<string, string | number>;
}

type Op<K extends Operation["op"]> = Operation & { op: K };

/** `before`: the definition without the changes; `places`: the positions before them. */
export function describeChange(
  before: Definition,
  changes: readonly Operation[],
  places: Positions,
  language: string,
): DescribedChange | null {
  const of = <K extends Operation["op"]>(kind: K) => changes.filter((one): one is Op<K> => one.op === kind);
  const fresh = new Map(of("add_node").map(({ node }) => [node.id, node]));
  const nameOf = (id: string) => {
    const node = fresh.get(id) ?? before.nodes.find((one) => one.id === id);
    return textIn(node?.name, language, id);
  };
  const ends = ({ source, target }: { source: string; target: string }) => ({
    from: nameOf(source),
    to: nameOf(target),
  });
  const removed = of("remove_node");
  if (removed.length > 0) return counted("removed", removed.length, { name: nameOf(removed[0]?.node ?? "") });
  if (fresh.size > 1) return counted("added", fresh.size, {});
  const [connected] = of("connect");
  const [added] = fresh.keys();
  if (added !== undefined) {
    const name = nameOf(added);
    const led = [...of("connect").map(({ edge }) => edge), ...reconnectedEdges(before, of("change_edge"))];
    const leads = led.find((edge) => edge.target === added);
    return leads
      ? { word: "addedAfter", values: { name, after: nameOf(leads.source) } }
      : { word: "added_one", values: { name } };
  }
  if (connected) return { word: "connected", values: ends(connected.edge) };
  const cut = of("disconnect");
  const gone = cut[0] && edgeNamed(before, cut[0].edge);
  if (gone) return counted("disconnected", cut.length, ends(gone));
  const [turned] = reconnectedEdges(before, of("change_edge"));
  if (turned) return { word: "turned", values: ends(turned) };
  const [renamed] = of("rename_node");
  if (renamed) return { word: "renamed", values: { name: renamed.node, to: renamed.to } };
  return describeMove(of("change_node"), places, nameOf);
}

/** `<word>_one` names the element, `<word>_other` counts several. */
function counted(word: string, count: number, values: DescribedChange["values"]): DescribedChange {
  return count === 1 ? { word: `${word}_one`, values } : { word: `${word}_other`, values: { count } };
}

/** Edges with a new source or target, with both ends. */
function reconnectedEdges(before: Definition, changes: readonly Op<"change_edge">[]) {
  return changes.flatMap(({ edge, set = {} }) => {
    const was = edgeNamed(before, edge);
    const [source, target] = [set["/source"] ?? was?.source, set["/target"] ?? was?.target];
    const isTurned = "/source" in set || "/target" in set;
    return isTurned && typeof source === "string" && typeof target === "string" ? [{ source, target }] : [];
  });
}

/** Ignore boxes that only received their displayed position in the document. */
function describeMove(
  changes: readonly Op<"change_node">[],
  places: Positions,
  nameOf: (id: string) => string,
): DescribedChange | null {
  const moves = changes.flatMap(({ node, set }) => {
    const to = set?.["/position"] as { x: number; y: number } | undefined;
    const was = places.get(node);
    const isSame = to && was && Math.round(was.x) === to.x && Math.round(was.y) === to.y;
    return to && !isSame ? [{ node, to }] : [];
  });
  const [first] = moves;
  return first ? counted("moved", moves.length, { name: nameOf(first.node), x: first.to.x, y: first.to.y }) : null;
}
