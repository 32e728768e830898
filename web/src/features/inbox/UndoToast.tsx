import { Undo2 } from "lucide-react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import type { HeldAnswer } from "./heldAnswer";

/** Shown while an answer is held: it can be taken back, or sent at once. Ctrl+Z takes it back outside text fields. */
export function UndoToast({ held, onUndo }: { held: HeldAnswer | null; onUndo: () => void }) {
  const { t } = useTranslation();
  useEffect(() => {
    const down = (event: KeyboardEvent) => {
      const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
      if (!held || !isUndo || (event.target as Element).closest?.("input, textarea, [contenteditable]")) return;
      event.preventDefault();
      onUndo();
    };
    window.addEventListener("keydown", down);
    return () => window.removeEventListener("keydown", down);
  });
  return (
    <div role="status" className="pointer-events-none fixed inset-x-0 bottom-4 z-40 flex justify-center px-4">
      {held ? (
        <div className="pointer-events-auto flex max-w-full flex-wrap items-center gap-2 rounded-lg border border-line bg-raised py-2 pr-2 pl-4 shadow-lg">
          <span className="min-w-0 wrap-anywhere">
            {t("undo.held", { action: t(`action.${held.action}`, held.action) })}
          </span>
          <Button onClick={onUndo}>
            <Undo2 className="size-4" aria-hidden /> {t("undo.undo")}
          </Button>
          <Button kind="quiet" onClick={held.send}>
            {t("undo.send")}
          </Button>
        </div>
      ) : null}
    </div>
  );
}
