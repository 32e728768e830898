/** Screen reader labels of React Flow, in the language of the page. */
import type { AriaLabelConfig } from "@xyflow/react";
import i18next from "i18next";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";

export function useAriaLabels(isEditable: boolean): Partial<AriaLabelConfig> {
  const { t } = useTranslation();
  return useMemo(
    () => ({
      "node.a11yDescription.default": t(isEditable ? "graph.drawn.nodeKeys" : "graph.drawn.nodeKeysLook"),
      "node.a11yDescription.keyboardDisabled": t(isEditable ? "graph.drawn.nodeKeys" : "graph.drawn.nodeKeysLook"),
      // React Flow would announce the position at each key press; UndoToast announces the final position once.
      "node.a11yDescription.ariaLiveMessage": () => "",
      "edge.a11yDescription.default": t("graph.drawn.edgeKeys"),
      "controls.ariaLabel": t("graph.drawn.controls"),
      "controls.zoomIn.ariaLabel": t("graph.drawn.nearer"),
      "controls.zoomOut.ariaLabel": t("graph.drawn.further"),
      "controls.fitView.ariaLabel": t("graph.whole"),
      "minimap.ariaLabel": t("graph.drawn.map"),
      "handle.ariaLabel": t("graph.drawn.handle"),
    }),
    [t, isEditable],
  );
}

/** Role description of a node or an edge. */
export function ariaRole(kind: "node" | "edge") {
  return { "aria-roledescription": i18next.t(`graph.drawn.${kind}`) };
}
