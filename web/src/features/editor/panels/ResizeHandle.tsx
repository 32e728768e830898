/** The edge of what stands beside the canvas, to be dragged, or moved with the arrow keys. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { browserStorage } from "@/browserStorage";

const KEPT_AS = "pointsman.panelWidth";
const LEAST = 280;
const USUAL = 384;
const STEP = 32;

function most(): number {
  return Math.max(LEAST, window.innerWidth - 320);
}

/** How wide it is, in pixels; this browser remembers. */
export function useWidth(): [number, (next: number) => void] {
  const [width, set] = useState(() => Number(browserStorage.read(KEPT_AS)) || USUAL);
  const change = (next: number) => {
    const fitting = Math.round(Math.min(most(), Math.max(LEAST, next)));
    browserStorage.write(KEPT_AS, String(fitting));
    set(fitting);
  };
  return [Math.min(width, most()), change];
}

export function ResizeHandle({ width, onChange }: { width: number; onChange: (width: number) => void }) {
  const { t } = useTranslation();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a separator that can be moved is no <hr>
    <div
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={t("panel.width")}
      aria-valuenow={width}
      aria-valuemin={LEAST}
      aria-valuemax={most()}
      title={t("panel.width")}
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft") onChange(width + STEP);
        else if (event.key === "ArrowRight") onChange(width - STEP);
        else return;
        event.preventDefault();
      }}
      onDoubleClick={() => onChange(width > USUAL ? USUAL : window.innerWidth / 2)}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) onChange(window.innerWidth - event.clientX);
      }}
      className="group -mr-1 flex w-2 shrink-0 cursor-col-resize touch-none justify-center max-md:hidden"
    >
      <span className="w-px bg-line group-hover:w-0.5 group-hover:bg-accent group-focus-visible:w-0.5 group-focus-visible:bg-accent" />
    </div>
  );
}
