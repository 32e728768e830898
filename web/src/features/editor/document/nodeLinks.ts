/** Links to a node in the URL hash: `#node=write`, or with a field `#node=write&field=/config/prompt`. */

export interface NodeLink {
  node: string;
  /** JSON pointer within the node; empty for the node as a whole. */
  field: string;
}

/** Null if the hash names no node. */
export function nodeLinkIn(hash: string): NodeLink | null {
  const params = new URLSearchParams(hash.replace(/^#/, ""));
  const node = params.get("node");
  return node ? { node, field: params.get("field") ?? "" } : null;
}

export function hashTo(node: string, field = ""): string {
  return new URLSearchParams(field ? { node, field } : { node }).toString();
}
