/** Positions of notes and frames, and what a frame contains: whatever has its centre inside. */

import type { Note, Picture } from "@/graph/model/picture";
import type { Region } from "@/graph/model/regions";
import { framesOf } from "./frames";
import { BOX, boundingRect, overlaps, type Point, type Rect } from "./geometry";

type Positions = ReadonlyMap<string, Point>;

export interface PlacedNote extends Rect {
  note: Note;
}

/** Space around the contents of a frame; its title stands above them. */
const FRAME_PAD = { side: 24, top: 48, bottom: 24 } as const;
const GAP = 24;

export const boxRect = (at: Point): Rect => ({ x: at.x, y: at.y, ...BOX });

/** Notes at their stored positions; the others stand in a row below the boxes. */
export function placeNotes(notes: readonly Note[], boxes: Positions): PlacedNote[] {
  const around = boundingRect([...boxes.values()].map(boxRect));
  const below = { x: around?.x ?? 0, y: around ? around.y + around.height + 3 * GAP : 0 };
  return notes.map((note) => {
    const { width, height } = note;
    if (note.position) return { note, ...note.position, width, height };
    const at = { ...below };
    below.x += width + GAP;
    return { note, ...at, width, height };
  });
}

export function isInside(one: Rect, frame: Rect): boolean {
  const middle = { x: one.x + one.width / 2, y: one.y + one.height / 2, width: 0, height: 0 };
  return overlaps(middle, frame) && one.width * one.height < frame.width * frame.height;
}

/** The rectangle of a frame around elements; null if there are none. */
export function frameAround(rects: Iterable<Rect>): Rect | null {
  const inner = boundingRect(rects);
  if (!inner) return null;
  return {
    x: inner.x - FRAME_PAD.side,
    y: inner.y - FRAME_PAD.top,
    width: inner.width + 2 * FRAME_PAD.side,
    height: inner.height + FRAME_PAD.top + FRAME_PAD.bottom,
  };
}

const membersOf = (frame: Rect, boxes: Positions): string[] =>
  [...boxes].flatMap(([id, at]) => (isInside(boxRect(at), frame) ? [id] : []));

/** The frames as regions, so that a layout keeps their boxes together. Frames that cut a region are left out. */
export function withFrameRegions(picture: Picture, notes: readonly PlacedNote[], boxes: Positions): Picture {
  const found: Region[] = [...(picture.regions ?? [])];
  for (const frame of notes.filter((one) => one.note.isFrame)) {
    const members = membersOf(frame, boxes);
    const fits = found.every((one) => isNested(members, one.members));
    if (members.length > 0 && fits) found.push({ id: frame.note.id, kind: "frame", members, parent: null });
  }
  const sorted = found.sort((a, b) => a.members.length - b.members.length);
  const regions = sorted.map((one, at) => ({
    ...one,
    parent: sorted.slice(at + 1).find((outer) => contains(outer.members, one.members))?.id ?? null,
  }));
  return { ...picture, regions };
}

function contains(outer: readonly string[], inner: readonly string[]): boolean {
  const all = new Set(outer);
  return inner.every((id) => all.has(id));
}

function isNested(one: readonly string[], other: readonly string[]): boolean {
  const all = new Set(other);
  const common = one.filter((id) => all.has(id)).length;
  return common === 0 || common === one.length || common === other.length;
}

/** After a new layout: notes stay beside their nearest box, and frames enclose what they contained. */
export function followBoxes(
  picture: Picture,
  notes: readonly PlacedNote[],
  before: Positions,
  after: Positions,
): Map<string, Rect> {
  const frames = notes.filter((one) => one.note.isFrame);
  const known = new Map([...before].filter(([id]) => after.has(id)));
  const members = new Map(frames.map((frame) => [frame.note.id, membersOf(frame, known)]));
  const isFilled = ({ note }: PlacedNote) => (members.get(note.id)?.length ?? 0) > 0;
  const found = new Map<string, Rect>();
  const taken = [...after.values()].map(boxRect);
  for (const one of notes) {
    if (isFilled(one)) continue;
    const around = frames
      .filter((frame) => isInside(one, frame) && isFilled(frame))
      .sort((a, b) => a.width - b.width)[0];
    const beside = around
      ? new Map((members.get(around.note.id) ?? []).map((id) => [id, known.get(id) as Point]))
      : known;
    const rect = freeRect(shifted(one, beside, after), taken);
    taken.push(rect);
    found.set(one.note.id, rect);
  }
  const regions = withFrameRegions(picture, notes, known).regions ?? [];
  const enclosing = new Map(framesOf(regions, after).map((one) => [one.region.id, one as Rect]));
  for (const frame of frames.filter(isFilled).sort((a, b) => a.width - b.width)) {
    const { id } = frame.note;
    const own =
      enclosing.get(id) ?? frameAround((members.get(id) ?? []).map((one) => boxRect(after.get(one) as Point)));
    const inner = notes.flatMap((one) => (isInside(one, frame) ? (found.get(one.note.id) ?? []) : []));
    const rect = boundingRect([...(own ? [own] : []), ...inner.flatMap((one) => frameAround([one]) ?? [])]);
    if (rect) found.set(id, { x: rect.x, y: rect.y, width: rect.width, height: rect.height });
  }
  return found;
}

/** Move a note as its nearest box moved. */
function shifted(note: PlacedNote, before: Positions, after: Positions): Rect {
  const { x, y, width, height } = note;
  const far = (at: Point) => Math.hypot(at.x + BOX.width / 2 - x - width / 2, at.y + BOX.height / 2 - y - height / 2);
  const [nearest] = [...before].sort((a, b) => far(a[1]) - far(b[1]));
  const to = nearest && after.get(nearest[0]);
  return to ? { x: x + to.x - nearest[1].x, y: y + to.y - nearest[1].y, width, height } : { x, y, width, height };
}

/** The next free rectangle below. */
function freeRect(rect: Rect, taken: readonly Rect[]): Rect {
  let { y } = rect;
  for (let hit = hitAt(y); hit; hit = hitAt(y)) y = hit.y + hit.height + GAP / 2;
  return { ...rect, y };

  function hitAt(at: number): Rect | undefined {
    return taken.find((one) => overlaps({ ...rect, y: at }, one));
  }
}
