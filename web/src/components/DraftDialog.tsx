import { type ComponentProps, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Confirm } from "./Confirm";
import { Dialog } from "./Dialog";

/**
 * A dialog in which somebody writes what is kept nowhere else: a key or a click beside it asks before that is lost.
 * "Cancel" does not ask: it says what it does.
 */
export function DraftDialog({ children, onClose, ...its }: ComponentProps<typeof Dialog>) {
  const { t } = useTranslation();
  const isWritten = useRef(false);
  const [isAsking, ask] = useState(false);
  return (
    <>
      <Dialog {...its} onClose={() => (isWritten.current ? ask(true) : onClose())}>
        <div
          onInput={() => {
            isWritten.current = true;
          }}
        >
          {children}
        </div>
      </Dialog>
      {isAsking ? (
        <Confirm
          title={t("dialog.discard")}
          about={t("dialog.discardAbout")}
          deed={t("dialog.discardDeed")}
          keep={t("dialog.goOn")}
          act={async () => onClose()}
          onClose={() => ask(false)}
        />
      ) : null}
    </>
  );
}
