import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useNodeName } from "@/graph/model/nodeNames";
import { FOCUSES_MAX, FocusCollector } from "./focus";
import type { ExecutionTimeline } from "./timelineModel";

/** Select the whole execution, or one branch or round of it. */
export function FocusPicker(props: {
  timeline: ExecutionTimeline;
  focus: string | null;
  onPick: (focus: string | null) => void;
}) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const collector = useMemo(() => new FocusCollector(), []);
  const focuses = collector.of(props.timeline);
  // Memoized: a step that ends must not render hundreds of options again.
  const offered = useMemo(
    () =>
      focuses.map((focus) => (
        <option key={focus.key} value={focus.key}>
          {t(`execution.${focus.kind}`, { node: nodeName(focus.node), number: focus.number })}
        </option>
      )),
    [focuses, nodeName, t],
  );
  if (focuses.length === 0) return null;
  return (
    <label className="flex items-center gap-2 border-b border-line bg-surface px-4 py-1 text-xs text-ink-soft">
      {t("execution.place")}
      <select
        aria-label={t("execution.place")}
        value={props.focus ?? ""}
        onChange={(event) => props.onPick(event.target.value || null)}
        className="h-7 min-w-0 rounded-md border border-line-strong bg-surface px-2 text-ink"
      >
        <option value="">{t("execution.everywhere")}</option>
        {offered}
      </select>
      {focuses.length >= FOCUSES_MAX ? t("execution.placesCut", { count: FOCUSES_MAX }) : null}
    </label>
  );
}
