/** Handle that resizes the side panel by dragging or with the arrow keys. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { browserStorage } from "@/browserStorage";

const STORAGE_KEY = "pointsman.panelWidth";
const WIDTH_MIN = 280;
const WIDTH_DEFAULT = 384;
const STEP = 32;

function maxWidth(): number {
  return Math.max(WIDTH_MIN, window.innerWidth - 320);
}

/** Width in pixels, stored in the browser. */
export function useWidth(): [number, (next: number) => void] {
  const [width, set] = useState(() => Number(browserStorage.read(STORAGE_KEY)) || WIDTH_DEFAULT);
  const change = (next: number) => {
    const fitting = Math.round(Math.min(maxWidth(), Math.max(WIDTH_MIN, next)));
    browserStorage.write(STORAGE_KEY, String(fitting));
    set(fitting);
  };
  return [Math.min(width, maxWidth()), change];
}

export function ResizeHandle({ width, onChange }: { width: number; onChange: (width: number) => void }) {
  const { t } = useTranslation();
  return (
    // biome-ignore lint/a11y/useSemanticElements: <hr> cannot be a movable separator
    <div
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={t("panel.width")}
      aria-valuenow={width}
      aria-valuemin={WIDTH_MIN}
      aria-valuemax={maxWidth()}
      title={t("panel.width")}
      onKeyDown={(event) => {
        if (event.key === "ArrowLeft") onChange(width + STEP);
        else if (event.key === "ArrowRight") onChange(width - STEP);
        else return;
        event.preventDefault();
      }}
      onDoubleClick={() => onChange(width > WIDTH_DEFAULT ? WIDTH_DEFAULT : window.innerWidth / 2)}
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
