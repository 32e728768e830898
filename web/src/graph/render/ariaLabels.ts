/** What the drawing library says to those who do not see the drawing, in the language of the page. */
import type { AriaLabelConfig } from "@xyflow/react";
import i18next from "i18next";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";

export function useAriaLabels(mayChange: boolean): Partial<AriaLabelConfig> {
  const { t } = useTranslation();
  return useMemo(
    () => ({
      "node.a11yDescription.default": t(mayChange ? "graph.drawn.nodeKeys" : "graph.drawn.nodeKeysLook"),
      "node.a11yDescription.keyboardDisabled": t(mayChange ? "graph.drawn.nodeKeys" : "graph.drawn.nodeKeysLook"),
      // The library tells where it stood before, and at each press; where it comes to rest is told once (Deeds).
      "node.a11yDescription.ariaLiveMessage": () => "",
      "edge.a11yDescription.default": t("graph.drawn.edgeKeys"),
      "controls.ariaLabel": t("graph.drawn.controls"),
      "controls.zoomIn.ariaLabel": t("graph.drawn.nearer"),
      "controls.zoomOut.ariaLabel": t("graph.drawn.further"),
      "controls.fitView.ariaLabel": t("graph.whole"),
      "minimap.ariaLabel": t("graph.drawn.map"),
      "handle.ariaLabel": t("graph.drawn.handle"),
    }),
    [t, mayChange],
  );
}

/** What a thing of the drawing is, beside its name. */
export function ariaKind(kind: "node" | "edge") {
  return { "aria-roledescription": i18next.t(`graph.drawn.${kind}`) };
}
