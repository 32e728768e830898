/** Invariants of every picture, for random graphs and positions. */

import { describe, expect, it } from "vitest";
import type { Definition } from "@/api/views";
import { framesOf } from "@/graph/layout/frames";
import { BOX, type Layout, type Point, type Rect, overlaps as rectsOverlap, spanOf } from "@/graph/layout/geometry";
import { type LayoutOptions, layoutOf, settledLayout } from "@/graph/layout/quickLayout";
import { type Picture, pictureOf } from "@/graph/model/picture";
import { pointOn } from "@/graph/routing/paths";
import { type Routes, routesOf } from "@/graph/routing/routes";
import { SpatialGrid } from "@/graph/routing/spatialGrid";
import { randomOf, untranslated, workflowOf } from "@/testing/graphs";

const ROUNDS = process.env.POINTSMAN_LONG ? 300 : 60;

interface Drawn extends Routes {
  picture: Picture;
  layout: Layout;
}

function drawn(definition: Definition, options: LayoutOptions = {}): Drawn {
  const picture = pictureOf(definition, "en", untranslated);
  const layout = layoutOf(picture, options);
  return { picture, layout, ...routesOf(picture, layout) };
}

/** Positions as a person would leave them: a grid with gaps and offsets, in arbitrary order. */
const PICTURES: Drawn[] = Array.from({ length: ROUNDS }, (_, at) => {
  const random = randomOf(at + 1);
  return drawn(workflowOf(random, 4 + random(50)), { inRows: at % 2 === 1 });
});

function everyPicture(look: (shown: Drawn, seed: number) => void): void {
  PICTURES.forEach((shown, at) => {
    look(shown, at + 1);
  });
}

/** The definition with one more node: on one of its edges, or behind one of its nodes. */
function byHand(definition: Definition, seed: number): Definition {
  const random = randomOf(seed + 1000);
  const wide = Math.ceil(Math.sqrt(definition.nodes.length)) + 1;
  const spots = definition.nodes.map((_, at) => at).sort((a, b) => ((a * 7 + seed) % 11) - ((b * 7 + seed) % 11));
  const nodes = definition.nodes.map((node, at) => {
    const spot = spots[at] ?? 0;
    const position = { x: (spot % wide) * 300 + random(60), y: Math.floor(spot / wide) * 130 + random(40) };
    return { ...node, position };
  });
  return { ...definition, nodes };
}

const boxesOf = ({ layout }: Drawn) => [...layout.positions].map(([id, at]) => ({ id, ...at, ...BOX }));

const inner = (one: Rect): Rect => ({ x: one.x + 1, y: one.y + 1, width: one.width - 2, height: one.height - 2 });

function crossings(shown: Drawn): string[] {
  const boxes = new SpatialGrid(boxesOf(shown).map((box) => ({ ...inner(box), id: box.id })));
  return shown.picture.arrows.flatMap(({ id, source, target }) => {
    const points = shown.routes.get(id)?.points ?? [];
    const met = new Set<string>();
    for (let at = 1; at < points.length; at++) {
      const [from, to] = [points[at - 1] as Point, points[at] as Point];
      for (const box of boxes.near(spanOf(from, to)))
        for (let share = 0; share <= 32; share++)
          if (rectsOverlap({ ...pointOn(from, to, share / 32), width: 0, height: 0 }, box)) met.add(box.id);
    }
    return [...met].filter((box) => box !== source && box !== target).map((box) => `${source}>${target} over ${box}`);
  });
}

function labelsOf(shown: Drawn): (Rect & { id: string })[] {
  return [...shown.routes]
    .filter(([, { label }]) => label.width > 0)
    .map(([id, { label }]) => ({
      id,
      x: label.x - label.width / 2,
      y: label.y - label.height / 2,
      width: label.width,
      height: label.height,
    }));
}

function overlaps<T extends Rect & { id: string }>(things: readonly T[], others: readonly T[] = things): string[] {
  return things.flatMap((one, at) =>
    (others === things ? others.slice(at + 1) : others)
      .filter((other) => rectsOverlap(inner(one), inner(other)))
      .map((other) => `${one.id} ${other.id}`),
  );
}

describe("every computed layout", () => {
  it("has no overlapping boxes", () => {
    everyPicture((shown, seed) => expect([seed, overlaps(boxesOf(shown))]).toEqual([seed, []]));
  });

  it("has no arrow across an unrelated box", () => {
    everyPicture((shown, seed) => expect([seed, crossings(shown)]).toEqual([seed, []]));
  });

  it("shows every label without overlapping boxes or other labels", () => {
    everyPicture((shown, seed) => {
      const labels = labelsOf(shown);
      expect([seed, overlaps(labels), overlaps(labels, boxesOf(shown))]).toEqual([seed, [], []]);
      const unsaid = shown.picture.arrows.filter((one) => one.label && !labels.some((label) => label.id === one.id));
      expect([seed, unsaid.map((one) => one.id)]).toEqual([seed, []]);
    });
  });

  it("has frames that contain exactly their members", () => {
    everyPicture((shown, seed) => {
      for (const frame of framesOf(shown.picture.regions ?? [], shown.layout.positions))
        for (const box of boxesOf(shown))
          expect([seed, box.id, rectsOverlap(frame, box)]).toEqual([
            seed,
            box.id,
            frame.region.members.includes(box.id),
          ]);
    });
  });

  it("stays inside its bounds", () => {
    everyPicture((shown, seed) => {
      const { bounds } = shown;
      const points = [...shown.routes.values()].flatMap(({ points }) => points);
      const rects = [...boxesOf(shown), ...framesOf(shown.picture.regions ?? [], shown.layout.positions)];
      const out = [...rects, ...labelsOf(shown), ...points.map((one) => ({ ...one, width: 0, height: 0 }))].filter(
        (one) =>
          one.x < bounds.x ||
          one.y < bounds.y ||
          one.x + one.width > bounds.x + bounds.width ||
          one.y + one.height > bounds.y + bounds.height,
      );
      expect([seed, out]).toEqual([seed, []]);
    });
  });

  it("is deterministic", () => {
    everyPicture(({ picture, layout, routes: lines }, seed) => {
      const again = layoutOf(picture, { inRows: seed % 2 === 0 });
      expect(again).toEqual(layout);
      expect(routesOf(picture, again).routes).toEqual(lines);
    });
  });
});

describe("every picture with manual positions", () => {
  it("has no arrow across an unrelated box and no overlapping label", () => {
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const random = randomOf(seed);
      const shown = drawn(byHand(workflowOf(random, 4 + random(40)), seed));
      expect(overlaps(boxesOf(shown))).toEqual([]);
      const labels = labelsOf(shown);
      expect([seed, crossings(shown), overlaps(labels), overlaps(labels, boxesOf(shown))]).toEqual([seed, [], [], []]);
    }
  });
});

/** Number of boxes that did not move, and of pairs that swapped sides, vertically or horizontally. */
function withOneMore(definition: Definition, seed: number): Definition {
  const edge = definition.edges[randomOf(seed + 500)(definition.edges.length)] as Definition["edges"][number];
  const nodes = [...definition.nodes, { id: "new", type: "agent" }];
  if (seed % 2 === 0)
    return { ...definition, nodes, edges: [...definition.edges, { source: edge.source, target: "new" }] };
  const edges = definition.edges.map((one) => (one === edge ? { ...one, target: "new" } : one));
  return { ...definition, nodes, edges: [...edges, { source: "new", target: edge.target }] };
}

/** How many boxes stand exactly where they stood, and which pairs changed sides: one above the other, one beside the other. */
function movedBetween(before: ReadonlyMap<string, Point>, after: ReadonlyMap<string, Point>) {
  const stood = [...before].flatMap(([id, was]) => {
    const now = after.get(id);
    return now ? [{ was, now }] : [];
  });
  const pairs = stood.flatMap((one, at) => stood.slice(at + 1).map((other) => ({ one, other })));
  const turned = (a: number, b: number, c: number, d: number) => Math.sign(a - b) !== Math.sign(c - d);
  const columns = pairs.filter(({ one, other }) => one.was.x === other.was.x && one.now.x === other.now.x);
  const rows = pairs.filter(({ one, other }) => one.was.y === other.was.y && one.now.y === other.now.y);
  return {
    boxes: stood.length,
    still: stood.filter(({ was, now }) => was.x === now.x && was.y === now.y).length,
    columns: columns.length,
    upside: columns.filter(({ one, other }) => turned(one.was.y, other.was.y, one.now.y, other.now.y)).length,
    sideways: rows.filter(({ one, other }) => turned(one.was.x, other.was.x, one.now.x, other.now.x)).length,
  };
}

describe("tidying", () => {
  it("is idempotent", () => {
    everyPicture(({ picture }, seed) => {
      for (const inRows of [false, true]) {
        const once = settledLayout(picture, { inRows });
        expect([seed, settledLayout(picture, { stands: once, inRows })]).toEqual([seed, once]);
      }
    });
  });

  it("moves few boxes when one node is added or removed", () => {
    const sum = { boxes: 0, still: 0, columns: 0, upside: 0, sideways: 0 };
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const random = randomOf(seed);
      const definition = workflowOf(random, 4 + random(50));
      if (definition.edges.length === 0) continue;
      const [fewer, more] = [definition, withOneMore(definition, seed)].map((one) =>
        pictureOf(one, "en", untranslated),
      ) as [Picture, Picture];
      const inRows = seed % 2 === 0;
      const first = settledLayout(fewer, { inRows });
      const grown = settledLayout(more, { stands: first, inRows });
      const shrunk = settledLayout(fewer, { stands: grown, inRows });
      for (const one of [movedBetween(first, grown), movedBetween(grown, shrunk)])
        for (const key of Object.keys(sum) as (keyof typeof sum)[]) sum[key] += one[key];
    }
    expect(sum.still / sum.boxes).toBeGreaterThan(0.5);
    expect(sum.upside / sum.columns).toBeLessThan(0.01);
    expect(sum.sideways).toBe(0);
  });
});

describe("a large picture with manual positions", () => {
  it("has no arrow across an unrelated box, although the effort for detours is limited", () => {
    const random = randomOf(5);
    const size = 500;
    const nodes = Array.from({ length: size }, (_, at) => ({ id: `n${at}`, type: "agent" }));
    const edges = Array.from({ length: 650 }, () => ({ source: `n${random(size)}`, target: `n${random(size)}` }));
    const shown = drawn(byHand({ id: "large", nodes, edges: edges.filter((one) => one.source !== one.target) }, 5));
    expect(crossings(shown)).toEqual([]);
  });
});

describe("dragging boxes one after another", () => {
  const dragged = (definition: Definition, box: string, by: number): Definition => ({
    ...definition,
    nodes: definition.nodes.map((one) =>
      one.id === box && one.position
        ? { ...one, position: { x: one.position.x + by, y: one.position.y + by / 3 } }
        : one,
    ),
  });

  it("gives the same routes as a computation without cache", () => {
    for (let seed = 1; seed <= ROUNDS / 4; seed++) {
      const random = randomOf(seed);
      let definition = byHand(workflowOf(random, 4 + random(40)), seed);
      let shown = drawn(definition);
      for (let step = 0; step < 4; step++) {
        const box = definition.nodes[random(definition.nodes.length)]?.id ?? "";
        definition = dragged(definition, box, random(900) - 450);
        const picture = pictureOf(definition, "en", untranslated);
        const layout = layoutOf(picture);
        shown = { picture, layout, ...routesOf(picture, layout, shown) };
        const { routes: lines, bounds } = drawn(definition);
        expect([seed, step, shown.routes, shown.bounds]).toEqual([seed, step, lines, bounds]);
      }
    }
  });

  it("recomputes only routes near the old and new positions", () => {
    const random = randomOf(7);
    const [size, wide] = [500, 23];
    const nodes = Array.from({ length: size }, (_, at) => ({
      id: `n${at}`,
      type: "agent",
      position: { x: (at % wide) * 300 + random(60), y: Math.floor(at / wide) * 130 + random(40) },
    }));
    const edges = Array.from({ length: 600 }, (_, at) => ({
      source: `n${at % size}`,
      target: `n${Math.min(size - 1, (at % size) + 2 + random(6))}`,
    })).filter((one) => one.source !== one.target);
    const definition = { id: "large", nodes, edges };
    const shown = drawn(definition);
    const next = dragged(definition, "n250", 150);
    const picture = pictureOf(next, "en", untranslated);
    const { cached: courses } = routesOf(picture, layoutOf(picture), shown);
    const anew = [...courses].filter(([id, course]) => shown.cached.get(id) !== course);
    expect(shown.cached.size).toBeGreaterThan(300);
    expect(anew.length).toBeLessThan(shown.cached.size / 10);
  });
});
