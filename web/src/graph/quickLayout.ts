/** A layered layout that is there at once: good enough for the first look, linear in what it lays out.

    layers by longest path (arrows that lead back are turned) ─▶ order within layers by the middle of the neighbours ─▶ places
*/
import { BOX, type Picture } from "./picture";

export type Places = Map<string, { x: number; y: number }>;

const GAP = { x: 96, y: 36 } as const;
const SWEEPS = 4;

export function quickLayout(picture: Picture): Places {
  const out = new Map<string, string[]>(picture.boxes.map((box) => [box.id, []]));
  for (const arrow of picture.arrows) if (arrow.source !== arrow.target) out.get(arrow.source)?.push(arrow.target);
  const forward = withoutWaysBack(picture, out);
  const layers = layered(picture, forward);
  ordered(layers, forward);
  return placed(layers);
}

/** The same arrows, those that close a circle turned around. */
function withoutWaysBack(picture: Picture, out: Map<string, string[]>): Map<string, string[]> {
  const forward = new Map<string, string[]>(picture.boxes.map((box) => [box.id, []]));
  const state = new Map<string, "open" | "over">();
  const visit = (first: string) => {
    const stack: { id: string; next: number }[] = [{ id: first, next: 0 }];
    state.set(first, "open");
    while (stack.length > 0) {
      const top = stack[stack.length - 1] as { id: string; next: number };
      const targets = out.get(top.id) ?? [];
      const target = targets[top.next++];
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
  // A turned arrow may now close another circle only with itself: a box cannot come before itself.
  for (const [id, targets] of forward)
    forward.set(
      id,
      [...new Set(targets)].filter((target) => target !== id),
    );
  return forward;
}

function layered(picture: Picture, forward: Map<string, string[]>): string[][] {
  const waiting = new Map<string, number>(picture.boxes.map((box) => [box.id, 0]));
  for (const targets of forward.values()) for (const one of targets) waiting.set(one, (waiting.get(one) ?? 0) + 1);
  const layer = new Map<string, number>();
  const ready = picture.boxes.map((box) => box.id).filter((id) => waiting.get(id) === 0);
  for (const id of ready) layer.set(id, 0);
  for (let at = 0; at < ready.length; at++) {
    const id = ready[at] as string;
    for (const target of forward.get(id) ?? []) {
      layer.set(target, Math.max(layer.get(target) ?? 0, (layer.get(id) ?? 0) + 1));
      const left = (waiting.get(target) ?? 1) - 1;
      waiting.set(target, left);
      if (left === 0) ready.push(target);
    }
  }
  const found: string[][] = [];
  for (const box of picture.boxes) {
    const at = layer.get(box.id) ?? 0;
    while (found.length <= at) found.push([]);
    found[at]?.push(box.id);
  }
  return found;
}

function ordered(layers: string[][], forward: Map<string, string[]>): void {
  const before = new Map<string, string[]>();
  for (const [id, targets] of forward)
    for (const target of targets) {
      const known = before.get(target);
      if (known) known.push(id);
      else before.set(target, [id]);
    }
  const rank = new Map<string, number>();
  const note = (layer: string[]) => {
    layer.forEach((id, at) => {
      rank.set(id, at - (layer.length - 1) / 2);
    });
  };
  layers.forEach(note);
  const sort = (layer: string[], neighbours: Map<string, string[]>) => {
    const middle = new Map(
      layer.map((id) => {
        const near = (neighbours.get(id) ?? []).map((one) => rank.get(one) ?? 0);
        return [id, near.length ? near.reduce((sum, one) => sum + one, 0) / near.length : (rank.get(id) ?? 0)];
      }),
    );
    layer.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0));
    note(layer);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (let at = 1; at < layers.length; at++) sort(layers[at] as string[], before);
    for (let at = layers.length - 2; at >= 0; at--) sort(layers[at] as string[], forward);
  }
}

function placed(layers: string[][]): Places {
  const places: Places = new Map();
  layers.forEach((layer, column) => {
    layer.forEach((id, row) => {
      places.set(id, {
        x: column * (BOX.width + GAP.x),
        y: (row - (layer.length - 1) / 2) * (BOX.height + GAP.y),
      });
    });
  });
  return places;
}

/** Where the author put the boxes, if all have a place; else laid out. */
export function placesOf(picture: Picture): Places {
  if (picture.boxes.length > 0 && picture.boxes.every((box) => box.position !== null) && !stacked(picture))
    return new Map(picture.boxes.map((box) => [box.id, box.position as { x: number; y: number }]));
  return quickLayout(picture);
}

/** Places that cover each other were never meant. */
function stacked(picture: Picture): boolean {
  const seen = new Set(picture.boxes.map((box) => `${box.position?.x},${box.position?.y}`));
  return seen.size < picture.boxes.length;
}
