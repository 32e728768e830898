/** Differences between two texts: first by lines, then by words inside the lines that changed. */

export interface Piece {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Lines that both texts have, or a change: words of the old lines, and words of the new ones. */
export type Hunk = { same: string[] } | { before: Piece[]; after: Piece[] };

/** Longer lists are not compared element by element: that would take longer than a reader waits. */
const CELLS_MAX = 4_000_000;

export function textDiff(before: string, after: string): Hunk[] {
  const hunks: Hunk[] = [];
  const pieces = diffOf(before.split("\n"), after.split("\n"));
  for (let at = 0; at < pieces.length; at++) {
    const { kind, parts } = pieces[at] as Run;
    if (kind === "same") {
      hunks.push({ same: parts });
      continue;
    }
    const next = pieces[at + 1];
    const isPair = kind === "removed" && next?.kind === "added";
    const removed = kind === "removed" ? parts : [];
    const added = kind === "added" ? parts : isPair ? next.parts : [];
    if (isPair) at += 1;
    hunks.push(changedLines(removed.join("\n"), added.join("\n"), removed.length > 0, added.length > 0));
  }
  return hunks;
}

function changedLines(before: string, after: string, hasBefore: boolean, hasAfter: boolean): Hunk {
  if (!hasBefore) return { before: [], after: [{ kind: "added", text: after }] };
  if (!hasAfter) return { before: [{ kind: "removed", text: before }], after: [] };
  const words = diffOf(wordsOf(before), wordsOf(after)).map(({ kind, parts }) => ({ kind, text: parts.join("") }));
  return {
    before: words.filter((one) => one.kind !== "added"),
    after: words.filter((one) => one.kind !== "removed"),
  };
}

const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

interface Run {
  kind: Piece["kind"];
  parts: string[];
}

/** Longest common subsequence, between a common beginning and a common end. */
function diffOf(before: readonly string[], after: readonly string[]): Run[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end += 1;
  const runs: Run[] = [];
  const put = (kind: Piece["kind"], parts: readonly string[]) => {
    const last = runs.at(-1);
    if (parts.length === 0) return;
    if (last?.kind === kind) last.parts.push(...parts);
    else runs.push({ kind, parts: [...parts] });
  };
  put("same", before.slice(0, start));
  const [old, next] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  if (old.length * next.length > CELLS_MAX) {
    put("removed", old);
    put("added", next);
  } else commonRuns(old, next, put);
  put("same", before.slice(before.length - end));
  return runs;
}

function commonRuns(
  old: readonly string[],
  next: readonly string[],
  put: (kind: Piece["kind"], parts: readonly string[]) => void,
): void {
  const width = next.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  for (let a = old.length - 1; a >= 0; a--)
    for (let b = next.length - 1; b >= 0; b--)
      lengths[a * width + b] =
        old[a] === next[b]
          ? (lengths[(a + 1) * width + b + 1] as number) + 1
          : Math.max(lengths[(a + 1) * width + b] as number, lengths[a * width + b + 1] as number);
  let [a, b] = [0, 0];
  let removed: string[] = [];
  let added: string[] = [];
  const flush = () => {
    put("removed", removed);
    put("added", added);
    removed = [];
    added = [];
  };
  while (a < old.length || b < next.length) {
    if (a < old.length && b < next.length && old[a] === next[b]) {
      flush();
      put("same", [old[a] as string]);
      a += 1;
      b += 1;
    } else if (
      b >= next.length ||
      (a < old.length && (lengths[(a + 1) * width + b] as number) >= (lengths[a * width + b + 1] as number))
    ) {
      removed.push(old[a] as string);
      a += 1;
    } else {
      added.push(next[b] as string);
      b += 1;
    }
  }
  flush();
}
