import { describe, expect, it } from "vitest";
import type { Picture } from "@/graph/model/picture";
import { BOX, type Point } from "./geometry";
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
  const { positions } = quickLayout(shown);
  const all = [...positions.entries()];
  return all.flatMap(([a, one], at) =>
    all
      .slice(at + 1)
      .filter(([, other]) => Math.abs(one.x - other.x) < BOX.width && Math.abs(one.y - other.y) < BOX.height)
      .map(([b]) => `${a} ${b}`),
  );
}

function rowsOf(positions: ReadonlyMap<string, Point>): string[] {
  const rows = new Map<number, string[]>();
  for (const [id, { y }] of [...positions].sort(([, a], [, b]) => a.y - b.y || a.x - b.x))
    rows.set(y, [...(rows.get(y) ?? []), id]);
  return [...rows.values()].map((row) => row.join(" "));
}

describe("the quick layout", () => {
  it("puts successors further to the right", () => {
    const { positions } = quickLayout(picture(["a>b", "b>c", "a>c"]));
    expect(positions.get("a")?.x).toBeLessThan(positions.get("b")?.x ?? 0);
    expect(positions.get("b")?.x).toBeLessThan(positions.get("c")?.x ?? 0);
  });

  it("routes long arrows around the boxes they pass", () => {
    const shown = picture(["a>b", "b>c", "a>c"]);
    const { positions, waypoints: routes } = quickLayout(shown);
    const route = routes.get("e2") ?? [];
    const passed = positions.get("b") as { x: number; y: number };
    expect(route.length).toBe(2);
    for (const point of route) expect(point.y < passed.y || point.y > passed.y + BOX.height).toBe(true);
  });

  it("keeps the direction of a long line, and wraps it only on request", () => {
    const line = Array.from({ length: 11 }, (_, at) => `n${at}>n${at + 1}`);
    const names = Array.from({ length: 12 }, (_, at) => `n${at}`).join(" ");
    expect(rowsOf(quickLayout(picture(line)).positions)).toEqual([names]);
    expect(rowsOf(quickLayout(picture(line), { inRows: true }).positions)).toHaveLength(3);
  });

  it("leads every edge of a graph without cycles to the right", () => {
    const edges = Array.from({ length: 120 }, (_, at) => `n${Math.floor((at * 7) / 13)}>n${at + 1}`);
    const { positions } = quickLayout(picture(edges));
    const x = (id = "") => positions.get(id)?.x ?? Number.NaN;
    expect(edges.map((edge) => edge.split(">")).filter(([from, to]) => !(x(from) < x(to)))).toEqual([]);
  });

  it("wraps a long line into rows, also with a back arrow", () => {
    const line = Array.from({ length: 11 }, (_, at) => `n${at}>n${at + 1}`);
    for (const more of ["n3>n2", "n11>n0"]) {
      const { positions } = quickLayout(picture([...line, more]), { inRows: true });
      expect(rowsOf(positions)).toEqual(["n0 n1 n2 n3", "n4 n5 n6 n7", "n8 n9 n10 n11"]);
      expect(Math.max(...[...positions.values()].map((place) => place.x + BOX.width))).toBeLessThan(1100);
    }
  });

  it("fills rows so that a later box does not move earlier ones", () => {
    const line = (length: number) => Array.from({ length }, (_, at) => `n${at}>n${at + 1}`);
    const { positions } = quickLayout(picture(line(9)), { inRows: true });
    const longer = quickLayout(picture(line(10)), { inRows: true }).positions;
    for (const [id, at] of positions) expect(longer.get(id)).toEqual(at);
  });

  it("wraps long branches into rows", () => {
    const branch = (name: string) => Array.from({ length: 6 }, (_, at) => `${name}${at}>${name}${at + 1}`);
    const fan = ["a", "b", "c", "d"].flatMap((name) => [`p>${name}0`, ...branch(name), `${name}6>j`]);
    const { positions } = quickLayout(picture([...fan, "j>z"]), { inRows: true });
    expect(Math.max(...[...positions.values()].map((place) => place.x + BOX.width))).toBeLessThan(2300);
    const long = quickLayout(
      picture([...branch("a"), ...branch("a").map((one) => one.replaceAll("a", "b")), "p>a0", "p>b0"]),
      { inRows: true },
    );
    expect(rowsOf(long.positions).length).toBeGreaterThan(3);
  });

  it("keeps the main line straight despite side branches and bypasses", () => {
    const shown = picture(["a>b", "b>c", "c>d", "d>e", "b>e", "c>x", "d>a"]);
    for (const arrow of shown.arrows) if (arrow.target === "x") arrow.isError = true;
    const { positions } = quickLayout(shown);
    expect(new Set(["a", "b", "c", "d", "e"].map((id) => positions.get(id)?.y)).size).toBe(1);
  });

  it("places equal branches symmetrically above and below", () => {
    const { positions } = quickLayout(picture(["a>b", "a>c", "b>d", "c>d"]));
    const y = (id: string) => positions.get(id)?.y ?? 0;
    expect(y("a")).toBe((y("b") + y("c")) / 2);
    expect(y("d")).toBe(y("a"));
  });

  it("handles cycles, self-loops and isolated boxes", () => {
    const shown = picture(["a>b", "b>a", "b>b", "c>c"]);
    expect(quickLayout(shown).positions.size).toBe(3);
    expect(covers(shown)).toEqual([]);
  });

  it("never overlaps boxes in random graphs", () => {
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

  it("lays out 2000 boxes", () => {
    const edges = Array.from({ length: 2000 }, (_, at) => `n${at}>n${Math.floor(at / 2)}`);
    expect(quickLayout(picture(edges)).positions.size).toBe(2000);
  });

  it("keeps the author's positions unless boxes overlap", () => {
    const shown = picture(["a>b"]);
    const [a, b] = shown.boxes;
    if (!a || !b) throw new Error("two boxes");
    a.position = { x: 5, y: 6 };
    b.position = { x: 500, y: 6 };
    expect(layoutOf(shown).positions.get("a")).toEqual({ x: 5, y: 6 });
    b.position = { x: 5, y: 6 };
    expect(layoutOf(shown).positions.get("a")).not.toEqual({ x: 5, y: 6 });
  });
});
