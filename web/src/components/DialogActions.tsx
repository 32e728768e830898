import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";

/** The buttons at the end of a dialog, always visible: "Cancel", then the action. */
export function DialogActions(props: {
  onClose?: () => void;
  /** Label of the closing button, if "Cancel" could be mistaken for the action. */
  cancelLabel?: string | undefined;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  return (
    <div className="sticky -bottom-4 z-10 -mx-4 -mb-4 mt-3 flex flex-wrap justify-end gap-2 bg-raised px-4 pt-2 pb-4 shadow-[0_-6px_6px_var(--raised)]">
      {props.onClose ? (
        <Button onClick={props.onClose} data-way-out>
          {props.cancelLabel ?? t("dialog.cancel")}
        </Button>
      ) : null}
      {props.children}
    </div>
  );
}
