/** In which order things stand in their layers: as they stand now, unless fewer arrows cross each other otherwise.

    each layer by the middle of its neighbours, down and up; what crosses least is kept, and of equals the first
    ─▶ two that stand side by side, turned around where that is better
*/
import type { Link } from "./geometry";

type Links = ReadonlyMap<string, readonly Link[]>;

const SWEEPS = 8;
/** In layers that are larger, pairs are not turned around: that takes the square of it. */
const PAIRS_MAX = 64;
/** So many sweeps without any gain are enough. */
const PATIENCE = 3;

export function ordered(layers: readonly (readonly string[])[], before: Links, after: Links): string[][] {
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
  if (least > 0) exchange(best, before, after);
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

/** As a share of the layer: layers differ in how much stands in them. */
const share = (at: number, length: number) => (at + 0.5) / length;

function ranksOf(layers: readonly (readonly string[])[]): Map<string, number> {
  return new Map(layers.flatMap((layer) => layer.map((id, at): [string, number] => [id, share(at, layer.length)])));
}

function middle(links: readonly Link[] | undefined, rank: ReadonlyMap<string, number>): number | undefined {
  if (!links || links.length === 0) return undefined;
  return links.reduce((sum, { to }) => sum + (rank.get(to) ?? 0), 0) / links.length;
}

/** Turns pairs around that cross less the other way, until there are none. */
function exchange(layers: string[][], before: Links, after: Links): void {
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
        const asIs = crossed(above.before, below.before) + crossed(above.after, below.after);
        const turned = crossed(below.before, above.before) + crossed(below.after, above.after);
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

/** How often arrows of one cross those of another that stands below it. */
function crossed(above: readonly number[], below: readonly number[]): number {
  let count = 0;
  for (const one of above) for (const other of below) if (one > other) count += 1;
  return count;
}

/** Counted from layer to layer, by a tree of sums over the places of the next one. */
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
