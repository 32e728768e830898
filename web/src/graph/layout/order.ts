/**
 * Order of elements within their layers: the present order, unless another one has fewer crossings.
 * sort each layer by the mean of its neighbours, down and up; keep the first order with the fewest crossings
 * ─▶ swap adjacent pairs where that reduces crossings
 */
import type { Link } from "./geometry";

type Links = ReadonlyMap<string, readonly Link[]>;

const SWEEPS = 8;
/** Pairs are not swapped in larger layers: the cost grows with the square of the size. */
const PAIRS_MAX = 64;
/** Stop after this number of sweeps without improvement. */
const PATIENCE = 3;

export function orderLayers(layers: readonly (readonly string[])[], before: Links, after: Links): string[][] {
  let now = layers.map((layer) => [...layer]);
  let best = now;
  let least = crossings(now, after);
  for (let sweep = 0, idle = 0; sweep < SWEEPS && idle < PATIENCE && least > 0; sweep++) {
    now = now.map((layer) => [...layer]);
    const isDown = sweep % 2 === 0;
    sweepOver(now, isDown ? before : after, isDown);
    const count = crossings(now, after);
    idle = count < least ? 0 : idle + 1;
    if (count < least) [best, least] = [now, count];
  }
  if (least > 0) swapPairs(best, before, after);
  return best;
}

function sweepOver(layers: string[][], neighbours: Links, isDown: boolean): void {
  const rank = ranksOf(layers);
  for (const layer of isDown ? layers : layers.toReversed()) {
    const wish = new Map(layer.map((id) => [id, middle(neighbours.get(id), rank) ?? rank.get(id) ?? 0]));
    layer.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0));
    layer.forEach((id, at) => {
      rank.set(id, share(at, layer.length));
    });
  }
}

/** Position as a share of the layer, because layers differ in size. */
const share = (at: number, length: number) => (at + 0.5) / length;

function ranksOf(layers: readonly (readonly string[])[]): Map<string, number> {
  return new Map(layers.flatMap((layer) => layer.map((id, at): [string, number] => [id, share(at, layer.length)])));
}

function middle(links: readonly Link[] | undefined, rank: ReadonlyMap<string, number>): number | undefined {
  if (!links || links.length === 0) return undefined;
  return links.reduce((sum, { to }) => sum + (rank.get(to) ?? 0), 0) / links.length;
}

/** Swap adjacent pairs that cross less in reverse order, until no such pair is left. */
function swapPairs(layers: string[][], before: Links, after: Links): void {
  const place = new Map(layers.flatMap((layer) => layer.map((id, at): [string, number] => [id, at])));
  const placesOf = (links: Links, id: string) => (links.get(id) ?? []).map(({ to }) => place.get(to) ?? 0);
  for (const layer of layers) {
    if (layer.length > PAIRS_MAX) continue;
    const ends = new Map(layer.map((id) => [id, { before: placesOf(before, id), after: placesOf(after, id) }]));
    for (let isMoving = true, round = 0; isMoving && round < layer.length; round++) {
      isMoving = false;
      for (let at = 1; at < layer.length; at++) {
        const [one, other] = [layer[at - 1] as string, layer[at] as string];
        const [above, below] = [ends.get(one), ends.get(other)];
        if (!above || !below) continue;
        const asIs = crossingsOfPair(above.before, below.before) + crossingsOfPair(above.after, below.after);
        const turned = crossingsOfPair(below.before, above.before) + crossingsOfPair(below.after, above.after);
        if (turned >= asIs) continue;
        layer[at - 1] = other;
        layer[at] = one;
        place.set(other, at - 1);
        place.set(one, at);
        isMoving = true;
      }
    }
  }
}

/** Crossings between the arrows of one element and those of an element below it. */
function crossingsOfPair(above: readonly number[], below: readonly number[]): number {
  let count = 0;
  for (const one of above) for (const other of below) if (one > other) count += 1;
  return count;
}

/** Count crossings between neighbouring layers with a Fenwick tree over the positions of the next layer. */
export function crossings(layers: readonly (readonly string[])[], after: Links): number {
  let count = 0;
  layers.forEach((layer, at) => {
    const next = layers[at + 1];
    if (!next) return;
    const place = new Map(next.map((id, at) => [id, at]));
    const sums = new Int32Array(next.length + 1);
    let met = 0;
    for (const id of layer) {
      const targets = (after.get(id) ?? []).map(({ to }) => place.get(to) ?? 0);
      for (const target of targets) {
        count += met;
        for (let up = target + 1; up > 0; up -= up & -up) count -= sums[up] as number;
      }
      for (const target of targets) {
        met += 1;
        for (let up = target + 1; up < sums.length; up += up & -up) sums[up] = (sums[up] as number) + 1;
      }
    }
  });
  return count;
}
