/** A layered layout that is there at once: good enough to read, near linear in what it lays out.

    layers by longest path (arrows that lead back are turned) ─▶ a slot in each layer that an arrow passes
    ─▶ order within layers by the middle of the neighbours ─▶ heights near the neighbours, nothing covered
*/
import { BOX, type Picture } from "./picture";

export interface Point {
  x: number;
  y: number;
}

/** Where boxes stand (their upper left corner), and by which points long arrows go. */
export interface Layout {
  places: Map<string, Point>;
  routes: Map<string, Point[]>;
}

const GAP = { x: 76, y: 34 } as const;
const SLOT = 22;
const SWEEPS = 6;
const SETTLES = 8;

type Links = Map<string, string[]>;

export function quickLayout(picture: Picture): Layout {
  const forward = withoutWaysBack(picture);
  const layer = layerOf(picture, forward);
  const { layers, before, after, slots } = withSlots(picture, forward, layer);
  order(layers, before, after);
  const middle = settled(layers, before, after);
  const x = (at: number) => at * (BOX.width + GAP.x);
  const places = new Map<string, Point>();
  for (const box of picture.boxes)
    places.set(box.id, { x: x(layer.get(box.id) ?? 0), y: (middle.get(box.id) ?? 0) - BOX.height / 2 });
  const routes = new Map<string, Point[]>();
  for (const arrow of picture.arrows) {
    const passed = slots.get(`${arrow.source}\n${arrow.target}`);
    if (!passed) continue;
    const first = (layer.get(arrow.source) ?? 0) + 1;
    routes.set(
      arrow.id,
      passed.flatMap((slot, at) => {
        const y = middle.get(slot) ?? 0;
        return [
          { x: x(first + at), y },
          { x: x(first + at) + BOX.width, y },
        ];
      }),
    );
  }
  return { places, routes };
}

/** The same arrows, those that close a circle turned around. */
function withoutWaysBack(picture: Picture): Links {
  const out: Links = new Map(picture.boxes.map((box) => [box.id, []]));
  for (const arrow of picture.arrows) if (arrow.source !== arrow.target) out.get(arrow.source)?.push(arrow.target);
  const forward: Links = new Map(picture.boxes.map((box) => [box.id, []]));
  const state = new Map<string, "open" | "over">();
  const visit = (first: string) => {
    const stack: { id: string; next: number }[] = [{ id: first, next: 0 }];
    state.set(first, "open");
    while (stack.length > 0) {
      const top = stack[stack.length - 1] as { id: string; next: number };
      const target = out.get(top.id)?.[top.next++];
      if (target === undefined) {
        state.set(top.id, "over");
        stack.pop();
      } else if (state.get(target) === "open") {
        forward.get(target)?.push(top.id);
      } else {
        forward.get(top.id)?.push(target);
        if (!state.has(target)) {
          state.set(target, "open");
          stack.push({ id: target, next: 0 });
        }
      }
    }
  };
  const entered = new Set(picture.arrows.map((arrow) => arrow.target));
  for (const box of picture.boxes) if (!entered.has(box.id) && !state.has(box.id)) visit(box.id);
  for (const box of picture.boxes) if (!state.has(box.id)) visit(box.id);
  for (const [id, targets] of forward) forward.set(id, [...new Set(targets)]);
  return forward;
}

function layerOf(picture: Picture, forward: Links): Map<string, number> {
  const waiting = new Map<string, number>(picture.boxes.map((box) => [box.id, 0]));
  for (const targets of forward.values()) for (const one of targets) waiting.set(one, (waiting.get(one) ?? 0) + 1);
  const layer = new Map<string, number>(picture.boxes.map((box) => [box.id, 0]));
  const ready = picture.boxes.map((box) => box.id).filter((id) => waiting.get(id) === 0);
  for (let at = 0; at < ready.length; at++) {
    const id = ready[at] as string;
    for (const target of forward.get(id) ?? []) {
      layer.set(target, Math.max(layer.get(target) ?? 0, (layer.get(id) ?? 0) + 1));
      const left = (waiting.get(target) ?? 1) - 1;
      waiting.set(target, left);
      if (left === 0) ready.push(target);
    }
  }
  return layer;
}

function withSlots(picture: Picture, forward: Links, layer: Map<string, number>) {
  const layers: string[][] = [];
  const put = (id: string, at: number) => {
    while (layers.length <= at) layers.push([]);
    layers[at]?.push(id);
  };
  for (const box of picture.boxes) put(box.id, layer.get(box.id) ?? 0);
  const before: Links = new Map();
  const after: Links = new Map();
  const link = (from: string, to: string) => {
    push(after, from, to);
    push(before, to, from);
  };
  const slots = new Map<string, string[]>();
  for (const [source, targets] of forward)
    for (const target of targets) {
      const from = layer.get(source) ?? 0;
      const to = layer.get(target) ?? 0;
      let last = source;
      const passed: string[] = [];
      for (let at = from + 1; at < to; at++) {
        const slot = `${source}\n${target}\n${at}`;
        put(slot, at);
        link(last, slot);
        passed.push(slot);
        last = slot;
      }
      link(last, target);
      if (passed.length > 0) slots.set(`${source}\n${target}`, passed);
    }
  return { layers, before, after, slots };
}

function push(links: Links, from: string, to: string): void {
  const known = links.get(from);
  if (known) known.push(to);
  else links.set(from, [to]);
}

function order(layers: string[][], before: Links, after: Links): void {
  const rank = new Map<string, number>();
  const note = (layer: string[]) => {
    layer.forEach((id, at) => {
      rank.set(id, at - (layer.length - 1) / 2);
    });
  };
  layers.forEach(note);
  const sort = (layer: string[], neighbours: Links) => {
    const wish = new Map(layer.map((id) => [id, mean(neighbours.get(id), rank) ?? rank.get(id) ?? 0]));
    layer.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0));
    note(layer);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const layer of layers) sort(layer, before);
    for (const layer of layers.toReversed()) sort(layer, after);
  }
}

/** The height of the middle of everything: near its neighbours, in order, and nothing over another. */
function settled(layers: string[][], before: Links, after: Links): Map<string, number> {
  const middle = new Map<string, number>();
  for (const layer of layers) place(layer, () => 0, middle);
  for (let round = 0; round < SETTLES; round++) {
    const turn = round % 2 === 0 ? layers : layers.toReversed();
    const neighbours = round % 2 === 0 ? before : after;
    const others = round % 2 === 0 ? after : before;
    for (const layer of turn)
      place(layer, (id) => mean(neighbours.get(id), middle) ?? mean(others.get(id), middle) ?? 0, middle);
  }
  return middle;
}

/** As near to the wishes as order and distances allow (least squares: neighbours that push each other are pooled). */
function place(layer: string[], wish: (id: string) => number, middle: Map<string, number>): void {
  const height = (id: string) => (id.includes("\n") ? SLOT : BOX.height);
  const offsets: number[] = [];
  layer.forEach((id, at) => {
    const last = layer[at - 1];
    offsets.push(last === undefined ? 0 : (offsets[at - 1] ?? 0) + (height(last) + height(id)) / 2 + GAP.y);
  });
  const pools: { sum: number; count: number }[] = [];
  layer.forEach((id, at) => {
    pools.push({ sum: wish(id) - (offsets[at] ?? 0), count: 1 });
    for (;;) {
      const last = pools.at(-1);
      const one = pools.at(-2);
      if (!last || !one || one.sum / one.count <= last.sum / last.count) break;
      pools.splice(-2, 2, { sum: one.sum + last.sum, count: one.count + last.count });
    }
  });
  let at = 0;
  for (const pool of pools)
    for (let n = 0; n < pool.count; n++, at++)
      middle.set(layer[at] as string, pool.sum / pool.count + (offsets[at] ?? 0));
}

function mean(ids: readonly string[] | undefined, of: Map<string, number>): number | undefined {
  if (!ids || ids.length === 0) return undefined;
  return ids.reduce((sum, id) => sum + (of.get(id) ?? 0), 0) / ids.length;
}

/** Where the author put the boxes, if all have a place; else laid out. */
export function layoutOf(picture: Picture): Layout {
  const placed = picture.boxes.length > 0 && picture.boxes.every((box) => box.position !== null);
  if (!placed || coversItself(picture)) return quickLayout(picture);
  return { places: new Map(picture.boxes.map((box) => [box.id, box.position as Point])), routes: new Map() };
}

/** Boxes that stand upon each other were never put there by anybody. */
function coversItself(picture: Picture): boolean {
  return new Set(picture.boxes.map((box) => `${box.position?.x},${box.position?.y}`)).size < picture.boxes.length;
}
