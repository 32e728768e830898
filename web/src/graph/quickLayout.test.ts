import { describe, expect, it } from "vitest";
import { BOX, type Picture } from "./picture";
import { layoutOf, quickLayout } from "./quickLayout";

function picture(edges: string[], names = new Set(edges.flatMap((edge) => edge.split(">")))): Picture {
  return {
    boxes: [...names].map((id) => ({ id, type: "agent", name: id, detail: "", position: null })),
    arrows: edges.map((edge, at) => {
      const [source = "", target = ""] = edge.split(">");
      return { id: `e${at}`, source, target, label: "", isError: false };
    }),
  };
}

function covers(shown: Picture): string[] {
  const { places } = quickLayout(shown);
  const all = [...places.entries()];
  return all.flatMap(([a, one], at) =>
    all
      .slice(at + 1)
      .filter(([, other]) => Math.abs(one.x - other.x) < BOX.width && Math.abs(one.y - other.y) < BOX.height)
      .map(([b]) => `${a} ${b}`),
  );
}

describe("the quick layout", () => {
  it("puts what comes later further to the right", () => {
    const { places } = quickLayout(picture(["a>b", "b>c", "a>c"]));
    expect(places.get("a")?.x).toBeLessThan(places.get("b")?.x ?? 0);
    expect(places.get("b")?.x).toBeLessThan(places.get("c")?.x ?? 0);
  });

  it("leads long arrows around the boxes they pass", () => {
    const shown = picture(["a>b", "b>c", "a>c"]);
    const { places, routes } = quickLayout(shown);
    const route = routes.get("e2") ?? [];
    const passed = places.get("b") as { x: number; y: number };
    expect(route.length).toBe(2);
    for (const point of route) expect(point.y < passed.y || point.y > passed.y + BOX.height).toBe(true);
  });

  it("is not led astray by circles, loops on themselves and boxes that nothing leads to", () => {
    const shown = picture(["a>b", "b>a", "b>b", "c>c"]);
    expect(quickLayout(shown).places.size).toBe(3);
    expect(covers(shown)).toEqual([]);
  });

  it("covers nothing, whatever the graph", () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    for (let round = 0; round < 40; round++) {
      const size = 2 + random(40);
      const edges = Array.from({ length: size * 2 }, () => `n${random(size)}>n${random(size)}`);
      expect(covers(picture(edges))).toEqual([]);
    }
  });

  it("lays out two thousand boxes", () => {
    const edges = Array.from({ length: 2000 }, (_, at) => `n${at}>n${Math.floor(at / 2)}`);
    expect(quickLayout(picture(edges)).places.size).toBe(2000);
  });

  it("leaves boxes where their author put them, unless they cover each other", () => {
    const shown = picture(["a>b"]);
    const [a, b] = shown.boxes;
    if (!a || !b) throw new Error("two boxes");
    a.position = { x: 5, y: 6 };
    b.position = { x: 500, y: 6 };
    expect(layoutOf(shown).places.get("a")).toEqual({ x: 5, y: 6 });
    b.position = { x: 5, y: 6 };
    expect(layoutOf(shown).places.get("a")).not.toEqual({ x: 5, y: 6 });
  });
});
