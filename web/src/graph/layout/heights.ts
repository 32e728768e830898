/**
 * Vertical positions: align each element with its main neighbours, so that the main line is straight and nothing
 * overlaps.
 */
import type { Link } from "./geometry";

type Links = ReadonlyMap<string, readonly Link[]>;
type NumberOf = (id: string) => number;

export const GAP_Y = 34;
const ROUNDS = 8;
/** Above this size, use the mean: a median takes too long. */
const POOL_MAX = 64;

interface Wish {
  at: number;
  weight: number;
}

/** Vertical centre of each element. */
export function heightsOf(
  layers: readonly (readonly string[])[],
  before: Links,
  after: Links,
  height: NumberOf,
): Map<string, number> {
  const middle = new Map<string, number>();
  for (const layer of layers) place(layer, () => ({ at: 0, weight: 1 }), middle, height);
  for (let round = 0; round < ROUNDS; round++) {
    const isForward = round % 2 === 0;
    const [first, second] = isForward ? [before, after] : [after, before];
    const wish = (id: string): Wish =>
      wishOf(first.get(id), middle) ?? wishOf(second.get(id), middle) ?? { at: middle.get(id) ?? 0, weight: 1 };
    for (const layer of isForward ? layers : layers.toReversed()) place(layer, wish, middle, height);
  }
  return middle;
}

/** Place elements as near to their wishes as order and distances allow: colliding neighbours are merged into a pool. */
function place(layer: readonly string[], wish: (id: string) => Wish, middle: Map<string, number>, height: NumberOf) {
  const offsets: number[] = [];
  layer.forEach((id, at) => {
    const last = layer[at - 1];
    offsets.push(last === undefined ? 0 : (offsets[at - 1] ?? 0) + (height(last) + height(id)) / 2 + GAP_Y);
  });
  const pools: { wishes: Wish[]; at: number }[] = [];
  layer.forEach((id, at) => {
    const { at: wished, weight } = wish(id);
    const own = wished - (offsets[at] ?? 0);
    pools.push({ wishes: [{ at: own, weight }], at: own });
    for (;;) {
      const last = pools.at(-1);
      const one = pools.at(-2);
      if (!last || !one || one.at <= last.at) break;
      const wishes = [...one.wishes, ...last.wishes];
      pools.splice(-2, 2, { wishes, at: wishes.length > POOL_MAX ? mean(wishes) : median(wishes) });
    }
  });
  let at = 0;
  for (const pool of pools)
    for (let n = 0; n < pool.wishes.length; n++, at++) middle.set(layer[at] as string, pool.at + (offsets[at] ?? 0));
}

function wishOf(links: readonly Link[] | undefined, middle: ReadonlyMap<string, number>): Wish | null {
  const [only] = links ?? [];
  if (!links || !only) return null;
  const to = (link: Link) => ({ at: (middle.get(link.to) ?? 0) + link.offset, weight: link.weight });
  if (links.length === 1) return to(only);
  return { at: median(links.map(to)), weight: links.reduce((sum, { weight }) => sum + weight, 0) };
}

/** Weighted median, so that side branches do not bend the main line. Between two equal halves, return the midpoint. */
function median(wishes: readonly Wish[]): number {
  const sorted = [...wishes].sort((a, b) => a.at - b.at);
  const all = sorted.reduce((sum, one) => sum + one.weight, 0);
  let passed = 0;
  for (const [n, one] of sorted.entries()) {
    passed += one.weight;
    if (passed * 2 === all) return (one.at + (sorted[n + 1] ?? one).at) / 2;
    if (passed * 2 > all) return one.at;
  }
  return 0;
}

function mean(wishes: readonly Wish[]): number {
  const all = wishes.reduce((sum, one) => sum + one.weight, 0);
  return wishes.reduce((sum, one) => sum + one.at * one.weight, 0) / all;
}
