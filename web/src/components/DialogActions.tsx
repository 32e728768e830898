import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";

/** What a dialog offers, at the end of it and always in sight: the way out, then what it is for. */
export function DialogActions(props: {
  onClose?: () => void;
  /** What the way out says, where "Cancel" would be taken for the deed. */
  keep?: string | undefined;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  return (
    <div className="sticky -bottom-4 z-10 -mx-4 -mb-4 mt-3 flex flex-wrap justify-end gap-2 bg-raised px-4 pt-2 pb-4 shadow-[0_-6px_6px_var(--raised)]">
      {props.onClose ? (
        <Button onClick={props.onClose} data-way-out>
          {props.keep ?? t("dialog.cancel")}
        </Button>
      ) : null}
      {props.children}
    </div>
  );
}
