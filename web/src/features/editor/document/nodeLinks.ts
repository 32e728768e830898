/** What an address names of a workflow: `#node=write`, with a field of it `#node=write&field=/config/prompt`. */

export interface NodeLink {
  node: string;
  /** A JSON pointer inside the node; empty: the node as a whole. */
  field: string;
}

/** Null: it names nothing. */
export function nodeLinkIn(hash: string): NodeLink | null {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const node = said.get("node");
  return node ? { node, field: said.get("field") ?? "" } : null;
}

export function hashTo(node: string, field = ""): string {
  return new URLSearchParams(field ? { node, field } : { node }).toString();
}
