/** The visible picture: regions folded, layout computed; the layout is computed again only if the shape changed. */

import { useMemo, useRef } from "react";
import { foldRegions } from "@/graph/layout/frames";
import { boundingRect, type Layout, portOffset } from "@/graph/layout/geometry";
import { labelSpace } from "@/graph/layout/labelWidth";
import { type PlacedNote, placeNotes } from "@/graph/layout/notes";
import { layoutOf } from "@/graph/layout/quickLayout";
import type { Picture } from "@/graph/model/picture";
import { type Routes, routesOf } from "@/graph/routing/routes";

export interface VisiblePicture extends Routes {
  picture: Picture;
  layout: Layout;
  notes: PlacedNote[];
  /** The layout with nothing folded. */
  unfoldedLayout: Layout;
}

export function useVisiblePicture(picture: Picture, closed: ReadonlySet<string>): VisiblePicture {
  const whole = useLayout(picture);
  const shown = useMemo(() => foldRegions(picture, closed, whole), [picture, closed, whole]);
  const layout = useLayout(shown);
  const routes = useRoutes(shown, layout);
  const notes = useMemo(() => placeNotes(shown.notes ?? [], layout.positions), [shown.notes, layout]);
  return useMemo(() => {
    const bounds = boundingRect([...(layout.positions.size > 0 ? [routes.bounds] : []), ...notes]) ?? routes.bounds;
    return { picture: shown, layout, unfoldedLayout: whole, notes, ...routes, bounds };
  }, [shown, layout, whole, notes, routes]);
}

function useRoutes(picture: Picture, layout: Layout): Routes {
  const last = useRef<{ picture: Picture; layout: Layout; drawn: Routes } | null>(null);
  return useMemo(() => {
    const was = last.current;
    const isSame = was !== null && was.layout === layout && hasSameArrows(was.picture, picture);
    const drawn = isSame ? was.drawn : routesOf(picture, layout, was?.drawn);
    last.current = { picture, layout, drawn };
    return drawn;
  }, [picture, layout]);
}

function hasSameArrows(a: Picture, b: Picture): boolean {
  return (
    a.arrows === b.arrows ||
    (a.arrows.length === b.arrows.length &&
      a.arrows.every((one, at) => {
        const other = b.arrows[at];
        return one.id === other?.id && one.label === other.label && portOffset(one.port) === portOffset(other.port);
      }))
  );
}

function useLayout(picture: Picture): Layout {
  const last = useRef<{ picture: Picture; layout: Layout } | null>(null);
  return useMemo(() => {
    const was = last.current;
    const layout = was && hasSameShape(was.picture, picture) ? was.layout : layoutOf(picture);
    last.current = { picture, layout };
    return layout;
  }, [picture]);
}

/** Names may differ: typing a name must not compute the layout at each key. */
function hasSameShape(a: Picture, b: Picture): boolean {
  return (
    a.boxes.length === b.boxes.length &&
    a.arrows.length === b.arrows.length &&
    a.boxes.every((one, at) => {
      const other = b.boxes[at];
      return (
        one === other ||
        (one.id === other?.id && one.position?.x === other.position?.x && one.position?.y === other.position?.y)
      );
    }) &&
    a.arrows.every((one, at) => {
      const other = b.arrows[at];
      return (
        one.id === other?.id &&
        one.source === other.source &&
        one.target === other.target &&
        labelSpace(one.label) === labelSpace(other.label)
      );
    }) &&
    JSON.stringify(a.regions) === JSON.stringify(b.regions)
  );
}
