/** Context menu of the canvas: opened by right click, long touch or the menu key. */
import { ContextMenu } from "radix-ui";
import { Fragment, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

export interface MenuEntry {
  /** Its label is `canvas.<name>`. */
  name: string;
  keys?: string;
  act: () => void;
  isOff?: boolean;
}

export function CanvasMenu(props: { children: ReactNode; parts: readonly (readonly MenuEntry[])[] }) {
  const { t } = useTranslation();
  return (
    <ContextMenu.Root>
      <ContextMenu.Trigger asChild>{props.children}</ContextMenu.Trigger>
      <ContextMenu.Portal>
        <ContextMenu.Content
          aria-label={t("canvas.menu")}
          className="z-40 min-w-52 rounded-md border border-line bg-raised p-1 shadow-lg"
        >
          {props.parts
            .filter((part) => part.length > 0)
            .map((part, at) => (
              <Fragment key={part[0]?.name}>
                {at > 0 ? <ContextMenu.Separator className="my-1 h-px bg-line" /> : null}
                {part.map((entry) => (
                  <ContextMenu.Item
                    key={entry.name}
                    disabled={entry.isOff ?? false}
                    onSelect={entry.act}
                    className="flex h-8 cursor-pointer items-center gap-6 rounded px-2.5 outline-none data-[disabled]:cursor-default data-[disabled]:opacity-50 data-[highlighted]:bg-accent-soft"
                  >
                    <span className="flex-1">{t(`canvas.${entry.name}`)}</span>
                    {entry.keys ? <kbd className="font-mono text-xs text-ink-faint">{entry.keys}</kbd> : null}
                  </ContextMenu.Item>
                ))}
              </Fragment>
            ))}
        </ContextMenu.Content>
      </ContextMenu.Portal>
    </ContextMenu.Root>
  );
}
