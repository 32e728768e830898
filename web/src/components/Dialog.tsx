import { X } from "lucide-react";
import { Dialog as Parts } from "radix-ui";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

export function Dialog(props: {
  open: boolean;
  onClose: () => void;
  title: string;
  about?: string;
  wide?: boolean;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  return (
    <Parts.Root open={props.open} onOpenChange={(open) => open || props.onClose()}>
      <Parts.Portal>
        <Parts.Overlay className="fixed inset-0 z-40 bg-[#0007]" />
        <Parts.Content
          {...(props.about ? {} : { "aria-describedby": undefined })}
          className={`fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[calc(100vw-2rem)] -translate-x-1/2 flex-col rounded-lg border border-line bg-raised shadow-xl ${props.wide ? "max-w-3xl" : "max-w-xl"}`}
        >
          <div className="flex items-start gap-3 border-b border-line px-4 py-3">
            <div className="min-w-0 flex-1">
              <Parts.Title className="font-semibold">{props.title}</Parts.Title>
              {props.about ? <Parts.Description className="text-ink-soft">{props.about}</Parts.Description> : null}
            </div>
            <Parts.Close className="rounded p-1 text-ink-soft hover:bg-sunken" aria-label={t("dialog.close")}>
              <X className="size-4" />
            </Parts.Close>
          </div>
          <div className="min-h-0 overflow-auto p-4">{props.children}</div>
        </Parts.Content>
      </Parts.Portal>
    </Parts.Root>
  );
}
