/** What somebody has just done to the document, in words: for those who do not see it happen. */
import type { Definition } from "@/api/views";
import { textIn } from "@/i18n";
import { edgeCalled, type Places } from "./edits";
import type { Operation } from "./operations";

/** `word` is `deed.<word>`; none: what was typed speaks for itself. */
export interface DescribedChange {
  word: string;
  values: Record<string, string | number>;
}

type Op<K extends Operation["op"]> = Operation & { op: K };

/** `before`: the document without it; `places`: where everything stood. */
export function describeChange(
  before: Definition,
  changes: readonly Operation[],
  places: Places,
  language: string,
): DescribedChange | null {
  const of = <K extends Operation["op"]>(kind: K) => changes.filter((one): one is Op<K> => one.op === kind);
  const fresh = new Map(of("add_node").map(({ node }) => [node.id, node]));
  const called = (id: string) => {
    const node = fresh.get(id) ?? before.nodes.find((one) => one.id === id);
    return textIn(node?.name, language, id);
  };
  const ends = ({ source, target }: { source: string; target: string }) => ({
    from: called(source),
    to: called(target),
  });
  const removed = of("remove_node");
  if (removed.length > 0) return counted("removed", removed.length, { name: called(removed[0]?.node ?? "") });
  if (fresh.size > 1) return counted("added", fresh.size, {});
  const [connected] = of("connect");
  const [added] = fresh.keys();
  if (added !== undefined) {
    const name = called(added);
    const led = [...of("connect").map(({ edge }) => edge), ...turnedIn(before, of("change_edge"))];
    const leads = led.find((edge) => edge.target === added);
    return leads
      ? { word: "addedAfter", values: { name, after: called(leads.source) } }
      : { word: "added_one", values: { name } };
  }
  if (connected) return { word: "connected", values: ends(connected.edge) };
  const cut = of("disconnect");
  const gone = cut[0] && edgeCalled(before, cut[0].edge);
  if (gone) return counted("disconnected", cut.length, ends(gone));
  const [turned] = turnedIn(before, of("change_edge"));
  if (turned) return { word: "turned", values: ends(turned) };
  const [renamed] = of("rename_node");
  if (renamed) return { word: "renamed", values: { name: renamed.node, to: renamed.to } };
  return movedIn(of("change_node"), places, called);
}

/** `<word>_one` names it, `<word>_other` counts them. */
function counted(word: string, count: number, values: DescribedChange["values"]): DescribedChange {
  return count === 1 ? { word: `${word}_one`, values } : { word: `${word}_other`, values: { count } };
}

/** Connections that lead elsewhere now, with both their ends. */
function turnedIn(before: Definition, changes: readonly Op<"change_edge">[]) {
  return changes.flatMap(({ edge, set = {} }) => {
    const was = edgeCalled(before, edge);
    const [source, target] = [set["/source"] ?? was?.source, set["/target"] ?? was?.target];
    const isTurned = "/source" in set || "/target" in set;
    return isTurned && typeof source === "string" && typeof target === "string" ? [{ source, target }] : [];
  });
}

/** Boxes that only got the place in the document that they had on the screen did not move. */
function movedIn(
  changes: readonly Op<"change_node">[],
  places: Places,
  called: (id: string) => string,
): DescribedChange | null {
  const moves = changes.flatMap(({ node, set }) => {
    const to = set?.["/position"] as { x: number; y: number } | undefined;
    const was = places.get(node);
    const isSame = to && was && Math.round(was.x) === to.x && Math.round(was.y) === to.y;
    return to && !isSame ? [{ node, to }] : [];
  });
  const [first] = moves;
  return first ? counted("moved", moves.length, { name: called(first.node), x: first.to.x, y: first.to.y }) : null;
}
