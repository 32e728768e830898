/** Nearer, further, and all of it at once. The library's own button waits for boxes, which a far view has none of. */
import { ControlButton, Controls } from "@xyflow/react";
import { Maximize } from "lucide-react";
import { useTranslation } from "react-i18next";

export function CanvasControls({ onWhole }: { onWhole: () => void }) {
  const { t } = useTranslation();
  return (
    <Controls showInteractive={false} showFitView={false}>
      <ControlButton onClick={onWhole} aria-label={t("graph.whole")} title={t("graph.whole")}>
        <Maximize aria-hidden className="!fill-none" />
      </ControlButton>
    </Controls>
  );
}
