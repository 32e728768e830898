import { describe, expect, it } from "vitest";
import type { Definition } from "@/api/views";
import type { Picture } from "@/graph/model/picture";
import { pictureOf } from "@/graph/model/picture";
import { untranslated } from "@/testing/graphs";
import { BOX, type Rect } from "./geometry";
import { boxRect, followBoxes, isInside, placeNotes, withFrameRegions } from "./notes";
import { settledLayout } from "./quickLayout";

const step = (id: string, x: number, y: number) => ({ id, type: "transform", position: { x, y } });
const note = (id: string, config: object, position?: { x: number; y: number }) => ({
  ...{ id, type: "note", config },
  ...(position ? { position } : {}),
});

const drawn = (nodes: object[], edges: object[] = []): Picture =>
  pictureOf({ id: "w", nodes, edges } as unknown as Definition, "en", untranslated);

const FRAME = { frame: true, text: "Part", width: 320, height: 260 };
const CHAIN = drawn(
  [
    step("a", 0, 0),
    step("b", 300, 300),
    step("c", 300, 400),
    step("d", 900, 0),
    note("part", FRAME, { x: 280, y: 250 }),
    note("hint", { text: "Look" }, { x: 10, y: -140 }),
  ],
  ["ab", "bc", "cd"].map(([source, target]) => ({ source, target })),
);
const positionsIn = (picture: Picture) => new Map(picture.boxes.map((box) => [box.id, box.position as Rect]));

describe("notes and frames", () => {
  it("are not boxes, and nothing leads to them", () => {
    expect(CHAIN.boxes.map((box) => box.id)).toEqual(["a", "b", "c", "d"]);
    expect(CHAIN.notes?.map((one) => [one.id, one.isFrame, one.color])).toEqual([
      ["part", true, "gray"],
      ["hint", false, "yellow"],
    ]);
  });

  it("stand below the boxes until they have a position", () => {
    const picture = drawn([step("a", 0, 0), note("one", {}), note("two", {})]);
    const [one, two] = placeNotes(picture.notes ?? [], positionsIn(picture));
    expect(one?.y).toBeGreaterThan(BOX.height);
    expect(two?.y).toBe(one?.y);
    expect(two?.x).toBeGreaterThan((one?.x ?? 0) + (one?.width ?? 0));
  });

  it("ignore values that the check has yet to refuse", () => {
    const picture = drawn([note("odd", { color: "pink", width: "wide", text: 7 })]);
    expect(picture.notes?.[0]).toMatchObject({ color: "yellow", width: 220, text: "" });
  });

  it("follow a new layout: the frame encloses the same boxes and no other one", () => {
    const before = positionsIn(CHAIN);
    const placed = placeNotes(CHAIN.notes ?? [], before);
    const after = settledLayout(withFrameRegions(CHAIN, placed, before), { stands: before });
    const to = followBoxes(CHAIN, placed, before, after);
    const frame = to.get("part") as Rect;
    const inside = [...after].filter(([, at]) => isInside(boxRect(at), frame)).map(([id]) => id);
    expect(inside.sort()).toEqual(["b", "c"]);
    const hint = to.get("hint") as Rect;
    expect([hint.width, hint.height]).toEqual([220, 120]);
  });

  it("stay where they are if the layout changes nothing", () => {
    const before = positionsIn(CHAIN);
    const placed = placeNotes(CHAIN.notes ?? [], before);
    expect(followBoxes(CHAIN, placed, before, before).get("hint")).toMatchObject({ x: 10, y: -140 });
  });

  it("do not split a loop: a frame that cuts one is left out of the layout", () => {
    const frameAt = (x: number, width: number): Picture => ({
      ...drawn([
        ...[step("a", 0, 0), step("b", 300, 0), step("c", 600, 0)],
        note("frame", { ...FRAME, width }, { x, y: -60 }),
      ]),
      regions: [{ id: "a", kind: "loop", members: ["b", "c"], parent: null }],
    });
    const regions = (picture: Picture) => {
      const before = positionsIn(picture);
      return withFrameRegions(picture, placeNotes(picture.notes ?? [], before), before).regions;
    };
    expect(regions(frameAt(250, 320))?.map((one) => [one.id, one.parent])).toEqual([
      ["frame", "a"],
      ["a", null],
    ]);
    expect(regions(frameAt(-10, 520))?.map((one) => one.id)).toEqual(["a"]);
  });
});
