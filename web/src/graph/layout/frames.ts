/** Regions in a layout: each region is laid out by itself and counts as one box on the level above. */

import type { Picture } from "@/graph/model/picture";
import type { Region } from "@/graph/model/regions";
import type { Layout, Level, Point, Size } from "./geometry";
import { BOX } from "./geometry";
import { labelSpace } from "./labelWidth";

export interface Frame extends Point, Size {
  region: Region;
}

/** Space around the content of a frame: for the title above, and for back arrows at the sides and below. */
export const PAD = { x: 34, top: 38, bottom: 38 } as const;
const BACK_ARROW_SPACE = 12;

/** Id of the box that represents a region. It cannot collide with a node id, which never contains a line break. */
export const frameName = (group: string) => `group\n${group}`;

type LayoutLevel = (level: Level, sizes: ReadonlyMap<string, Size>) => Layout & Size;

export function withFrames(
  picture: Picture,
  boxes: ReadonlyMap<string, Size>,
  layout: LayoutLevel,
  stands: ReadonlyMap<string, Point>,
): Layout {
  const levels = levelsOf(picture, stands);
  const sizes = new Map(boxes);
  const done = new Map<string, Layout & Size>();
  // Distance from the top of a level to the centre of each box in it, including boxes in nested frames.
  const depths = new Map<string, Map<string, number>>();
  const ends = new Map(picture.arrows.map(({ id, source, target }) => [id, { source, target }]));
  for (const [name, level] of levels) {
    const lift = (box: string, end: string | undefined) =>
      end === undefined || !depths.has(box) ? 0 : (depths.get(box)?.get(end) ?? 0) - (sizes.get(box)?.height ?? 0) / 2;
    const arrows = level.arrows.map((arrow) => ({
      ...arrow,
      fromOffset: lift(arrow.source, ends.get(arrow.id)?.source),
      toOffset: lift(arrow.target, ends.get(arrow.id)?.target),
    }));
    const one = layout({ ...level, arrows }, sizes);
    done.set(name, one);
    if (!name) continue;
    const bottom = PAD.bottom + (hasBackArrow(level, one) ? BACK_ARROW_SPACE : 0);
    sizes.set(name, { width: one.width + 2 * PAD.x, height: one.height + PAD.top + bottom });
    const own = new Map<string, number>();
    for (const [id, { y }] of one.positions)
      for (const [inner, depth] of depths.get(id) ?? [[id, BOX.height / 2] as const])
        own.set(inner, PAD.top + y + depth);
    depths.set(name, own);
  }
  const positions = new Map<string, Point>();
  const routes = new Map<string, Point[]>();
  const put = (name: string, at: Point) => {
    const one = done.get(name);
    for (const [id, place] of one?.positions ?? []) {
      const there = { x: at.x + place.x, y: at.y + place.y };
      if (levels.has(id)) put(id, { x: there.x + PAD.x, y: there.y + PAD.top });
      else positions.set(id, there);
    }
    for (const [id, route] of one?.waypoints ?? [])
      routes.set(
        id,
        route.map((point) => ({ x: at.x + point.x, y: at.y + point.y })),
      );
  };
  put("", { x: 0, y: 0 });
  return { positions, waypoints: routes };
}

/** Boxes and arrows of each nesting level, innermost first; the name of the outermost level is "". */
export function levelsOf(picture: Picture, stands: ReadonlyMap<string, Point> = new Map()): Map<string, Level> {
  const groups = [...(picture.regions ?? [])].sort((a, b) => a.members.length - b.members.length);
  const around = new Map<string, string>();
  for (const group of groups) for (const id of group.members) if (!around.has(id)) around.set(id, frameName(group.id));
  for (const group of groups) around.set(frameName(group.id), group.parent === null ? "" : frameName(group.parent));
  const levels = new Map<string, Level>();
  for (const group of groups) levels.set(frameName(group.id), { boxes: [], arrows: [] });
  levels.set("", { boxes: [], arrows: [] });
  const add = (id: string, members: readonly string[]) => {
    const heights = members.flatMap((one) => stands.get(one)?.y ?? []);
    const known = heights.length > 0 ? { currentY: Math.min(...heights) } : {};
    levels.get(around.get(id) ?? "")?.boxes.push({ id, ...known });
  };
  for (const box of picture.boxes) add(box.id, [box.id]);
  for (const group of groups) add(frameName(group.id), group.members);
  const path = (id: string) => {
    const found = [id];
    for (let at = around.get(id) ?? ""; at !== ""; at = around.get(at) ?? "") found.push(at);
    return [...found, ""].reverse();
  };
  for (const arrow of picture.arrows) {
    const [from, to] = [path(arrow.source), path(arrow.target)];
    let depth = 0;
    while (from[depth + 1] === to[depth + 1] && from[depth + 1] !== undefined) depth += 1;
    const [source, target] = [from[depth + 1], to[depth + 1]];
    if (source !== undefined && target !== undefined && source !== target)
      levels.get(from[depth] ?? "")?.arrows.push({
        ...{ id: arrow.id, source, target },
        ...{ labelSpace: labelSpace(arrow.label), isSideBranch: arrow.isError },
      });
  }
  return levels;
}

function hasBackArrow(level: Level, { positions }: Layout): boolean {
  return level.arrows.some((arrow) => (positions.get(arrow.target)?.x ?? 0) <= (positions.get(arrow.source)?.x ?? 0));
}

/** Frames around boxes that have positions, outermost first. */
export function framesOf(groups: readonly Region[], positions: ReadonlyMap<string, Point>): Frame[] {
  const made = new Map<string, Frame>();
  // From the innermost outwards, so that a frame contains its nested frames.
  for (const group of [...groups].sort((a, b) => a.members.length - b.members.length)) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    const hold = (one: Point & Size) => {
      left = Math.min(left, one.x);
      top = Math.min(top, one.y);
      right = Math.max(right, one.x + one.width);
      bottom = Math.max(bottom, one.y + one.height);
    };
    for (const id of group.members) {
      const at = positions.get(id);
      if (at) hold({ ...at, ...BOX });
    }
    for (const inner of made.values()) if (inner.region.parent === group.id) hold(inner);
    if (left === Infinity) continue;
    made.set(group.id, {
      region: group,
      x: left - PAD.x,
      y: top - PAD.top,
      width: right - left + 2 * PAD.x,
      height: bottom - top + PAD.top + PAD.bottom,
    });
  }
  return [...made.values()].reverse();
}

/** Replace each closed region by one box and redirect the arrows of its members to that box. */
export function foldRegions(picture: Picture, closed: ReadonlySet<string>, layout: Layout): Picture {
  const groups = picture.regions ?? [];
  const hides = new Map<string, Region>();
  // The outermost closed region hides everything inside.
  for (const group of [...groups].sort((a, b) => a.members.length - b.members.length))
    if (closed.has(group.id)) for (const id of group.members) hides.set(id, group);
  if (hides.size === 0) return picture;
  const shown = (id: string) => {
    const group = hides.get(id);
    return group ? frameName(group.id) : id;
  };
  const names = new Map(picture.boxes.map((box) => [box.id, box]));
  const boxes = picture.boxes.filter((box) => !hides.has(box.id));
  const frames = framesOf(groups, layout.positions);
  for (const group of new Set(hides.values())) {
    const frame = frames.find((one) => one.region.id === group.id);
    const isPlaced = group.members.every((id) => names.get(id)?.position);
    boxes.push({
      id: frameName(group.id),
      type: group.kind,
      name: names.get(group.id)?.name ?? group.id,
      detail: "",
      position: isPlaced && frame ? { x: frame.x + PAD.x, y: frame.y + PAD.top } : null,
      foldedNodes: group.members,
    });
  }
  const seen = new Set<string>();
  const arrows = picture.arrows.flatMap((arrow) => {
    const [source, target] = [shown(arrow.source), shown(arrow.target)];
    if (source === arrow.source && target === arrow.target) return [arrow];
    const key = `${source} ${target}`;
    if (source === target || seen.has(key)) return [];
    seen.add(key);
    const { port: _, ...rest } = arrow;
    return [source === arrow.source ? { ...arrow, target } : { ...rest, source, target }];
  });
  const open = groups.filter((group) => !hides.has(group.id) && !closed.has(group.id));
  return {
    ...picture,
    boxes,
    arrows,
    regions: open.map((group) => ({
      ...group,
      members: [...new Set(group.members.map(shown))],
      count: group.count ?? group.members.length,
    })),
  };
}
