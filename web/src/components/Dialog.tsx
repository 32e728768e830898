import { X } from "lucide-react";
import { Dialog as Parts } from "radix-ui";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { iconLook } from "./IconButton";
import { focusFirstField } from "./initialFocus";

export function Dialog(props: {
  open: boolean;
  onClose: () => void;
  title: string;
  about?: string;
  wide?: boolean | "full";
  /** Moves the focus when the dialog closes and returns true; if it returns false, the focus returns to where it
   * was. */
  moveFocus?: () => boolean;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  // The focus returns to the element that had it when the dialog opened.
  const [opened, setOpened] = useState<{ isOpen: boolean; from: Element | null }>({ isOpen: false, from: null });
  if (props.open !== opened.isOpen)
    setOpened({ isOpen: props.open, from: props.open ? document.activeElement : opened.from });
  const stopWaiting = useRef<() => void>(undefined);
  useEffect(() => () => stopWaiting.current?.(), []);
  return (
    <Parts.Root open={props.open} onOpenChange={(open) => open || props.onClose()}>
      <Parts.Portal>
        <Parts.Overlay className="fixed inset-0 z-50 bg-[#0007]" />
        <Parts.Content
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            stopWaiting.current = focusFirstField(event.currentTarget as HTMLElement);
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (props.moveFocus?.()) return;
            if (opened.from instanceof HTMLElement) opened.from.focus();
          }}
          {...(props.about ? {} : { "aria-describedby": undefined })}
          className={`fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col overflow-hidden rounded-lg border border-line bg-raised shadow-xl outline-none ${props.wide === "full" ? "max-w-[96rem]" : props.wide ? "max-w-3xl" : "max-w-xl"}`}
        >
          <div className="flex items-start gap-3 border-b border-line px-4 py-3">
            <div className="max-h-[36vh] min-w-0 flex-1 overflow-y-auto">
              <Parts.Title className="font-semibold wrap-anywhere">{props.title}</Parts.Title>
              {props.about ? (
                <Parts.Description className="text-ink-soft wrap-anywhere">{props.about}</Parts.Description>
              ) : null}
            </div>
            <Parts.Close
              className={`${iconLook()} -my-1 -mr-2`}
              aria-label={t("dialog.close")}
              title={t("dialog.close")}
            >
              <X className="size-4" aria-hidden />
            </Parts.Close>
          </div>
          <div className="min-h-0 scroll-pb-16 overflow-auto p-4">{props.children}</div>
        </Parts.Content>
      </Parts.Portal>
    </Parts.Root>
  );
}
