/** Find the lines of a node in the text of a document, in any dialect. Lines are 1-based. */
import type { Format } from "./DocumentEditor";

export function formatOf(text: string): Format {
  return /^\s*(?:\/\/[^\n]*\s*|\/\*[\s\S]*?\*\/\s*)*[{[]/.test(text) ? "json" : "yaml";
}

/** First and last line of the entry that has this id or key. */
export function linesOf(text: string, id: string): [number, number] | null {
  const name = id.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const lines = text.split("\n");
  const has = new RegExp(`(?:^|[\\s{,-])["']?(?:id|node_id|nodeId)["']?\\s*:\\s*["']?${name}["']?\\s*(?:[,}#]|$)`);
  const called = new RegExp(`^\\s*["']?${name}["']?\\s*:\\s*(?:\\{.*)?$`);
  let at = lines.findIndex((line) => has.test(line));
  if (at < 0) at = lines.findIndex((line) => called.test(line));
  if (at < 0) return null;
  const first = startOf(lines, at);
  return [first + 1, endOf(lines, first) + 1];
}

/** First line of the entry that contains a line. */
function startOf(lines: readonly string[], at: number): number {
  const here = lines[at] ?? "";
  if (/^\s*-\s/.test(here) || /^\s*\{/.test(here) || !/^\s*["']?(?:id|node_id|nodeId)\b/.test(here)) return at;
  const depth = depthOf(here);
  for (let above = at - 1; above >= 0; above -= 1) {
    const line = lines[above] ?? "";
    if (line.trim() && depthOf(line) < depth) return above;
  }
  return at;
}

/** Last line of the entry: the line before the next one that is not indented further. */
function endOf(lines: readonly string[], first: number): number {
  const depth = depthOf(lines[first] ?? "");
  let last = first;
  for (let below = first + 1; below < lines.length; below += 1) {
    const line = lines[below] ?? "";
    if (!line.trim()) continue;
    if (depthOf(line) <= depth) return /^\s*[}\]]/.test(line) && depthOf(line) === depth ? below : last;
    last = below;
  }
  return last;
}

function depthOf(line: string): number {
  return line.length - line.trimStart().length;
}
