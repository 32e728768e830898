import { type ComponentProps, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Confirm } from "./Confirm";
import { Dialog } from "./Dialog";

/** A dialog with input that is stored nowhere else: Escape or a click outside asks before it discards the input.
 * "Cancel" does not ask: its label is clear. */
export function DraftDialog({ children, onClose, ...its }: ComponentProps<typeof Dialog>) {
  const { t } = useTranslation();
  const hasInput = useRef(false);
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Dialog {...its} onClose={() => (hasInput.current ? setAsking(true) : onClose())}>
        <div
          onInput={() => {
            hasInput.current = true;
          }}
        >
          {children}
        </div>
      </Dialog>
      {isAsking ? (
        <Confirm
          title={t("dialog.discard")}
          about={t("dialog.discardAbout")}
          confirmLabel={t("dialog.discardConfirm")}
          cancelLabel={t("dialog.goOn")}
          action={async () => onClose()}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </>
  );
}
