import { X } from "lucide-react";
import { Dialog as Parts } from "radix-ui";
import { type ReactNode, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { beginIn } from "./beginning";
import { iconLook } from "./IconButton";

export function Dialog(props: {
  open: boolean;
  onClose: () => void;
  title: string;
  about?: string;
  wide?: boolean;
  /** Whoever goes on elsewhere than where they were when it opened is brought there: true if so. */
  goOn?: () => boolean;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  // Whoever was at work when it opened goes on there when it is closed.
  const before = useRef<Element | null>(null);
  const wasOpen = useRef(false);
  if (props.open && !wasOpen.current) before.current = document.activeElement;
  wasOpen.current = props.open;
  const end = useRef<() => void>(undefined);
  useEffect(() => () => end.current?.(), []);
  return (
    <Parts.Root open={props.open} onOpenChange={(open) => open || props.onClose()}>
      <Parts.Portal>
        <Parts.Overlay className="fixed inset-0 z-50 bg-[#0007]" />
        <Parts.Content
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            end.current = beginIn(event.currentTarget as HTMLElement);
          }}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (props.goOn?.()) return;
            if (before.current instanceof HTMLElement) before.current.focus();
          }}
          {...(props.about ? {} : { "aria-describedby": undefined })}
          className={`fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col rounded-lg border border-line bg-raised shadow-xl outline-none ${props.wide ? "max-w-3xl" : "max-w-xl"}`}
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
