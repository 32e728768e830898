import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useNodeName } from "@/graph/model/nodeNames";
import { PLACES_MAX, Places } from "./focus";
import type { ExecutionTimeline } from "./timelineModel";

/** Everything at once, or one branch or round of it. */
export function PlacePicker(props: {
  story: ExecutionTimeline;
  place: string | null;
  onPick: (place: string | null) => void;
}) {
  const { t } = useTranslation();
  const called = useNodeName();
  const known = useMemo(() => new Places(), []);
  const places = known.of(props.story);
  // Of hundreds of places none is drawn anew because a step of one of them ended.
  const offered = useMemo(
    () =>
      places.map((place) => (
        <option key={place.key} value={place.key}>
          {t(`execution.${place.kind}`, { node: called(place.node), number: place.number })}
        </option>
      )),
    [places, called, t],
  );
  if (places.length === 0) return null;
  return (
    <label className="flex items-center gap-2 border-b border-line bg-surface px-4 py-1 text-xs text-ink-soft">
      {t("execution.place")}
      <select
        aria-label={t("execution.place")}
        value={props.place ?? ""}
        onChange={(event) => props.onPick(event.target.value || null)}
        className="h-7 min-w-0 rounded-md border border-line-strong bg-surface px-2 text-ink"
      >
        <option value="">{t("execution.everywhere")}</option>
        {offered}
      </select>
      {places.length >= PLACES_MAX ? t("execution.placesCut", { count: PLACES_MAX }) : null}
    </label>
  );
}
