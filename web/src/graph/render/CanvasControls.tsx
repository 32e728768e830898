/**
 * Zoom in, zoom out, and fit to view. React Flow's own fit button needs rendered nodes, which the overview does not
 * have.
 */
import { ControlButton, Controls } from "@xyflow/react";
import { Maximize } from "lucide-react";
import { useTranslation } from "react-i18next";

export function CanvasControls({ onWhole: onFit }: { onWhole: () => void }) {
  const { t } = useTranslation();
  return (
    <Controls showInteractive={false} showFitView={false}>
      <ControlButton onClick={onFit} aria-label={t("graph.whole")} title={t("graph.whole")}>
        <Maximize aria-hidden className="!fill-none" />
      </ControlButton>
    </Controls>
  );
}
