/** Problems in the words of the screen: names of nodes and labels of fields instead of ids and paths. */
import type { TFunction } from "i18next";
import type { Problem } from "@/api/http";
import type { Definition } from "@/api/views";
import { edgeNames } from "@/graph/model/edgeNames";
import { textIn } from "@/i18n";

const EDGE = /\bedge '([^']+)'/g;
const OWNED = /'([\w.]+)' of (?:(?:node|edge) (?:'[^']*'|number \d+))/g;
const NODE = /(?:\b(?:the )?[a-z_-]+ )?'([^']+)'/g;
const FIELD = /`([A-Za-z][\w.]*)`/g;

export function problemsByName(
  problems: readonly Problem[],
  definition: Definition,
  language: string,
  t: TFunction,
): Problem[] {
  // Messages quote the name of a node, or the id of one without a name.
  const nodes = new Map(
    definition.nodes.flatMap((node) => {
      const shown = `“${textIn(node.name, language, node.id)}”`;
      return [node.id, textIn(node.name, "en", node.id)].map((quoted) => [quoted, shown] as const);
    }),
  );
  const edges = new Map(
    edgeNames(definition.edges).map((name, at) => {
      const edge = definition.edges[at] as Definition["edges"][number];
      return [name, `${nodes.get(edge.source) ?? edge.source} → ${nodes.get(edge.target) ?? edge.target}`];
    }),
  );
  const fieldOf = (path: string) => {
    const last = path.split(".").at(-1) ?? path;
    return t(`field.${last}`, { defaultValue: "" });
  };
  const named = (text: string) =>
    text
      .replace(OWNED, (whole, path: string) => (fieldOf(path) ? `“${fieldOf(path)}”` : whole))
      .replace(EDGE, (whole, name: string) => edges.get(name) ?? whole)
      .replace(NODE, (whole, id: string) => nodes.get(id) ?? whole)
      .replace(FIELD, (whole, path: string) => (fieldOf(path) ? `“${fieldOf(path)}”` : whole));
  return problems.map((one) => ({ ...one, message: named(one.message), hint: named(one.hint) }));
}
