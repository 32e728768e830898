import { describe, expect, it } from "vitest";
import type { Definition, DefinitionNode } from "@/api/views";
import { folded, frameName, framesOf } from "@/graph/layout/frames";
import { layoutOf, quickLayout } from "@/graph/layout/quickLayout";
import { unspoken } from "@/testing/graphs";
import { adjacencyOf, dominatorsOf, inOrder } from "./adjacency";
import { pictureOf } from "./picture";
import { regionsOf } from "./regions";

/** As in `p:parallel>a p>b a>j:join b>j`: nodes by first mention, an agent where no type is said. */
function drawn(text: string, more: Record<string, Partial<DefinitionNode>> = {}): Definition {
  const nodes = new Map<string, DefinitionNode>();
  const edges = text.split(" ").map((pair) => {
    const [source = "", target = ""] = pair.split(">").map((part) => {
      const [id = "", type] = part.split(":");
      const known = nodes.get(id);
      if (!known || type) nodes.set(id, { id, type: type ?? "agent", ...more[id] });
      return id;
    });
    return { source, target };
  });
  return { id: "w", nodes: [...nodes.values()], edges };
}

const told = (definition: Definition) =>
  Object.fromEntries(regionsOf(definition).map((group) => [group.id, [group.members.join(" "), group.parent]]));

describe("groups", () => {
  it("hold what lies between a parallel and its join", () => {
    expect(told(drawn("s>p:parallel p>a p>b a>c c>j:join b>j j>z"))).toEqual({ p: ["a b c", null] });
  });

  it("hold what a round of a loop passes, and not what comes after it", () => {
    expect(told(drawn("s>l:loop l>a a>b b>l l>z"))).toEqual({ l: ["a b", null] });
  });

  it("stand inside each other", () => {
    expect(told(drawn("s>l:loop l>p:parallel p>a p>b a>j:join b>j j>l l>z"))).toEqual({
      l: ["p a b j", null],
      p: ["a b", "l"],
    });
    expect(told(drawn("p:parallel>l:loop l>a a>l l>j:join p>b b>j j>z"))).toEqual({
      p: ["l a b", null],
      l: ["a", "p"],
    });
  });

  it("close as many as a join names", () => {
    const text = "p:parallel>q:parallel q>a a>j:join j>z";
    expect(told(drawn(text))).toEqual({ p: ["q a j z", null], q: ["a", "p"] });
    expect(told(drawn(text, { j: { config: { of: "p" } } }))).toEqual({ p: ["q a", null], q: ["a", "p"] });
  });

  it("follow what the document leaves unsaid: branches that are named, a body that is listed", () => {
    const fork = drawn("a>j:join b>j j>z p:parallel>z", { p: { config: { branches: ["a", "b"] } } });
    expect(told(fork)).toEqual({ p: ["a b", null] });
    const loop = drawn("l:loop>z a>b", { l: { config: { body: ["a", "b"] } } });
    expect(told(loop)).toEqual({ l: ["a b", null] });
  });

  it("leave an end outside that is reached from outside as well", () => {
    expect(told(drawn("s>p:parallel p>a a>e:end a>j:join j>e"))).toEqual({ p: ["a", null] });
  });

  it("never cut through each other, whatever the graph", () => {
    let seed = 11;
    const random = (below: number) => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    const types = ["parallel", "join", "loop", "agent", "agent", "end"];
    for (let round = 0; round < 200; round++) {
      const size = 3 + random(14);
      const nodes = Array.from({ length: size }, (_, at) => ({ id: `n${at}`, type: types[random(6)] as string }));
      const edges = Array.from({ length: size * 2 }, () => ({
        source: `n${random(size)}`,
        target: `n${random(size)}`,
      }));
      const definition = { id: "w", nodes, edges };
      const groups = regionsOf(definition);
      const cut = groups.filter((one) =>
        groups.some((other) => {
          const both = one.members.filter((id) => other.members.includes(id)).length;
          return both > 0 && both < one.members.length && both < other.members.length;
        }),
      );
      expect(cut).toEqual([]);
      expect(quickLayout(pictureOf(definition, "en", unspoken)).positions.size).toBe(size);
    }
  });
});

describe("frames", () => {
  const definition = drawn("s>l:loop l>p:parallel p>a p>b a>j:join b>j j>l l>z");
  const picture = pictureOf(definition, "en", unspoken);

  it("hold what is inside and nothing else", () => {
    const layout = layoutOf(picture);
    const frames = framesOf(picture.regions ?? [], layout.positions);
    expect(frames.map((frame) => frame.region.id)).toEqual(["l", "p"]);
    for (const { region: group, x, y, width, height } of frames)
      for (const [id, at] of layout.positions) {
        const isIn = at.x >= x && at.x < x + width && at.y >= y && at.y < y + height;
        expect([group.id, id, isIn]).toEqual([group.id, id, group.members.includes(id)]);
      }
  });

  it("are read in rows where what is inside is long, and stay rectangles around it", () => {
    const steps = Array.from({ length: 11 }, (_, at) => `a${at}>a${at + 1}`).join(" ");
    const long = pictureOf(drawn(`s>l:loop l>a0 ${steps} a11>l l>z`), "en", unspoken);
    const { positions: places } = layoutOf(long);
    const [frame] = framesOf(long.regions ?? [], places);
    expect(new Set([...places].filter(([id]) => id.startsWith("a")).map(([, at]) => at.y)).size).toBe(3);
    expect(frame?.width).toBeLessThan(1500);
  });

  it("keep a folded group inside the group around it", () => {
    const shown = folded(picture, new Set(["p"]), layoutOf(picture));
    const [outer] = framesOf(shown.regions ?? [], layoutOf(shown).positions);
    expect(outer?.region.members).toEqual(["p", frameName("p"), "j"]);
    expect(outer?.region.count).toBe(4);
  });

  it("fold into one box, and arrows lead there", () => {
    const shown = folded(picture, new Set(["l"]), layoutOf(picture));
    expect(shown.boxes.map((box) => box.id)).toEqual(["s", "l", "z", frameName("l")]);
    expect(shown.boxes.at(-1)?.inside).toEqual(["p", "a", "b", "j"]);
    expect(shown.arrows.map((arrow) => `${arrow.source}>${arrow.target}`)).toEqual([
      "s>l",
      `l>${frameName("l")}`,
      `${frameName("l")}>l`,
      "l>z",
    ]);
    expect(shown.regions).toEqual([]);
  });
});

describe("ways", () => {
  it("are told in the order of the flow, branch by branch", () => {
    const ways = adjacencyOf(["z", "a", "b", "c", "d"], drawn("a>b a>c b>d d>z c>z z>a").edges);
    expect(inOrder(adjacencyOf(["a", "b", "c", "d", "z"], drawn("a>b a>c b>d d>z c>z").edges))).toEqual([
      "a",
      "b",
      "d",
      "c",
      "z",
    ]);
    expect(inOrder(ways)).toHaveLength(5);
  });

  it("tell who must be passed", () => {
    const dominators = dominatorsOf(adjacencyOf(["a", "b", "c", "d"], drawn("a>b b>c b>d c>d d>b").edges));
    expect([...dominators("d")].sort()).toEqual(["a", "b"]);
    expect([...dominators("a")]).toEqual([]);
  });
});
