import { describe, expect, it } from "vitest";
import { randomOf } from "@/testing/graphs";
import { Lanes, type Straight } from "./lanes";
import { SpatialGrid } from "./spatialGrid";

interface Part extends Straight {
  name: number;
}

const ROOM = 4;

/** Random parts: some nearly overlap, some begin where others end, some have length 0. */
function partsOf(seed: number, count: number): Part[] {
  const random = randomOf(seed);
  return Array.from({ length: count }, (_, name) => {
    const isLevel = random(2) === 0;
    const [along, beside, length] = [random(800) - 400, (random(160) - 80) / 2, random(4) * random(300)];
    return isLevel
      ? { name, isLevel, x: along, y: beside, width: length, height: 0 }
      : { name, isLevel, x: beside, y: along, width: 0, height: length };
  });
}

describe("Lanes", () => {
  it("finds the same neighbours as a spatial grid", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const parts = partsOf(seed, 60);
      const [lanes, ground] = [new Lanes<Part>(ROOM), new SpatialGrid<Part>(parts)];
      for (const part of parts) lanes.add(part);
      for (const part of parts) {
        const wanted = ground.near(part, ROOM).filter((one) => one.isLevel === part.isLevel);
        const found = parts.filter((one) => lanes.hasBeside(part, (other) => other === one));
        expect([seed, part.name, found.map((one) => one.name)]).toEqual([
          seed,
          part.name,
          wanted.map((one) => one.name).sort((a, b) => a - b),
        ]);
      }
    }
  });

  it("does not inspect parts in distant lanes, however long they are", () => {
    const lanes = new Lanes<Part>(ROOM);
    const long = (name: number): Part => ({ name, isLevel: true, x: 0, y: name * 10, width: 50_000, height: 0 });
    for (let name = 0; name < 2000; name++) lanes.add(long(name));
    let looked = 0;
    lanes.hasBeside(long(1000), () => {
      looked += 1;
      return false;
    });
    expect(looked).toBe(1);
  });
});
