import { describe, expect, it } from "vitest";
import type { Definition, DefinitionNode } from "@/api/views";
import { folded, frameName, framesOf } from "@/graph/layout/frames";
import { layoutOf } from "@/graph/layout/quickLayout";
import { unspoken } from "@/testing/graphs";
import { adjacencyOf, inOrder } from "./adjacency";
import { pictureOf } from "./picture";
import { impliedEdges, regionsOf } from "./regions";

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

/** `outer: members` for each region, the outer ones first; the type of the opener gives the kind. */
function withRegions(definition: Definition, members: Record<string, string>): Definition {
  const inside = Object.entries(members).map(([id, ids]) => ({ id, members: ids.split(" ") }));
  const regions = inside.map((one, at) => ({
    ...one,
    kind: definition.nodes.find((node) => node.id === one.id)?.type as "parallel" | "loop",
    parent: inside.slice(0, at).findLast((other) => other.members.includes(one.id))?.id ?? null,
  }));
  return { ...definition, graph: { regions, implied: [], known: definition.nodes.map((node) => node.id) } };
}

const NESTED = withRegions(drawn("s>l:loop l>p:parallel p>a p>b a>j:join b>j j>l l>z"), { l: "p a b j", p: "a b" });
const shown = (definition: Definition) =>
  Object.fromEntries(regionsOf(definition).map((one) => [one.id, [one.members.join(" "), one.parent]]));
const without = (definition: Definition, gone: string): Definition => ({
  ...definition,
  nodes: definition.nodes.filter((node) => node.id !== gone),
  edges: definition.edges.filter((edge) => edge.source !== gone && edge.target !== gone),
});

describe("regions of a draft", () => {
  it("are those that the server found", () => {
    expect(shown(NESTED)).toEqual({ l: ["p a b j", null], p: ["a b", "l"] });
    expect(shown(drawn("l:loop>a a>l"))).toEqual({});
  });

  it("lose what was removed, and go with the node that opens them", () => {
    expect(shown(without(NESTED, "a"))).toEqual({ l: ["p b j", null], p: ["b", "l"] });
    expect(shown(without(NESTED, "l"))).toEqual({ p: ["a b", null] });
    expect(shown(without(NESTED, "p"))).toEqual({ l: ["a b j", null] });
  });

  it("take a new node in where its neighbours are, until the server has seen it", () => {
    const added = (source: string, target: string): Definition => ({
      ...NESTED,
      nodes: [...NESTED.nodes, { id: "new", type: "agent" }],
      edges: [...NESTED.edges, { source, target: "new" }, { source: "new", target }],
    });
    expect(shown(added("p", "b"))).toEqual({ l: ["p a b j new", null], p: ["a b new", "l"] });
    expect(shown(added("j", "l"))).toEqual({ l: ["p a b j new", null], p: ["a b", "l"] });
    expect(shown(added("s", "z"))).toEqual({ l: ["p a b j", null], p: ["a b", "l"] });
  });

  it("have the implied edges that nobody has drawn", () => {
    const definition = drawn("p:parallel>a b>z");
    const implied = [
      { source: "p", target: "a" },
      { source: "p", target: "b" },
      { source: "p", target: "gone" },
    ];
    expect(impliedEdges({ ...definition, graph: { regions: [], implied } })).toEqual([{ source: "p", target: "b" }]);
  });
});

describe("frames", () => {
  const picture = pictureOf(NESTED, "en", unspoken);

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
    const ids = Array.from({ length: 12 }, (_, at) => `a${at}`).join(" ");
    const long = pictureOf(withRegions(drawn(`s>l:loop l>a0 ${steps} a11>l l>z`), { l: ids }), "en", unspoken);
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
});
