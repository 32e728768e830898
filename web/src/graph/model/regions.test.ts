import { describe, expect, it } from "vitest";
import type { Definition, DefinitionNode } from "@/api/views";
import { foldRegions, frameName, framesOf } from "@/graph/layout/frames";
import { layoutOf } from "@/graph/layout/quickLayout";
import { untranslated } from "@/testing/graphs";
import { adjacencyOf, flowOrder } from "./adjacency";
import { pictureOf } from "./picture";
import { impliedEdges, regionsOf } from "./regions";

/** Parse `p:parallel>a p>b a>j:join b>j`: nodes in the order of their first mention; the type defaults to agent. */
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

/**
 * `members` maps an opening node to its members, outer regions first. The type of the opening node is the kind of the
 * region.
 */
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
  it("match those that the server computed", () => {
    expect(shown(NESTED)).toEqual({ l: ["p a b j", null], p: ["a b", "l"] });
    expect(shown(drawn("l:loop>a a>l"))).toEqual({});
  });

  it("lose removed nodes, and disappear with the node that opens them", () => {
    expect(shown(without(NESTED, "a"))).toEqual({ l: ["p b j", null], p: ["b", "l"] });
    expect(shown(without(NESTED, "l"))).toEqual({ p: ["a b", null] });
    expect(shown(without(NESTED, "p"))).toEqual({ l: ["a b j", null] });
  });

  it("contain a new node if its neighbours are inside, until the next check", () => {
    const added = (source: string, target: string): Definition => ({
      ...NESTED,
      nodes: [...NESTED.nodes, { id: "new", type: "agent" }],
      edges: [...NESTED.edges, { source, target: "new" }, { source: "new", target }],
    });
    expect(shown(added("p", "b"))).toEqual({ l: ["p a b j new", null], p: ["a b new", "l"] });
    expect(shown(added("j", "l"))).toEqual({ l: ["p a b j new", null], p: ["a b", "l"] });
    expect(shown(added("s", "z"))).toEqual({ l: ["p a b j", null], p: ["a b", "l"] });
  });

  it("add implied edges that the document does not contain", () => {
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
  const picture = pictureOf(NESTED, "en", untranslated);

  it("contain exactly the members of their region", () => {
    const layout = layoutOf(picture);
    const frames = framesOf(picture.regions ?? [], layout.positions);
    expect(frames.map((frame) => frame.region.id)).toEqual(["l", "p"]);
    for (const { region: group, x, y, width, height } of frames)
      for (const [id, at] of layout.positions) {
        const isIn = at.x >= x && at.x < x + width && at.y >= y && at.y < y + height;
        expect([group.id, id, isIn]).toEqual([group.id, id, group.members.includes(id)]);
      }
  });

  it("wrap long content into rows and stay rectangles around it", () => {
    const steps = Array.from({ length: 11 }, (_, at) => `a${at}>a${at + 1}`).join(" ");
    const ids = Array.from({ length: 12 }, (_, at) => `a${at}`).join(" ");
    const long = pictureOf(withRegions(drawn(`s>l:loop l>a0 ${steps} a11>l l>z`), { l: ids }), "en", untranslated);
    const { positions } = layoutOf(long, { inRows: true });
    const [frame] = framesOf(long.regions ?? [], positions);
    expect(new Set([...positions].filter(([id]) => id.startsWith("a")).map(([, at]) => at.y)).size).toBe(3);
    expect(frame?.width).toBeLessThan(1500);
  });

  it("keep a folded region inside its parent region", () => {
    const shown = foldRegions(picture, new Set(["p"]), layoutOf(picture));
    const [outer] = framesOf(shown.regions ?? [], layoutOf(shown).positions);
    expect(outer?.region.members).toEqual(["p", frameName("p"), "j"]);
    expect(outer?.region.count).toBe(4);
  });

  it("fold into one box that takes over the arrows of its members", () => {
    const shown = foldRegions(picture, new Set(["l"]), layoutOf(picture));
    expect(shown.boxes.map((box) => box.id)).toEqual(["s", "l", "z", frameName("l")]);
    expect(shown.boxes.at(-1)?.foldedNodes).toEqual(["p", "a", "b", "j"]);
    expect(shown.arrows.map((arrow) => `${arrow.source}>${arrow.target}`)).toEqual([
      "s>l",
      `l>${frameName("l")}`,
      `${frameName("l")}>l`,
      "l>z",
    ]);
    expect(shown.regions).toEqual([]);
  });
});

describe("flow order", () => {
  it("lists nodes branch by branch", () => {
    const adjacency = adjacencyOf(["z", "a", "b", "c", "d"], drawn("a>b a>c b>d d>z c>z z>a").edges);
    expect(flowOrder(adjacencyOf(["a", "b", "c", "d", "z"], drawn("a>b a>c b>d d>z c>z").edges))).toEqual([
      "a",
      "b",
      "d",
      "c",
      "z",
    ]);
    expect(flowOrder(adjacency)).toHaveLength(5);
  });
});
