import { Toolbar } from "radix-ui";
import { type KeyboardEvent, useRef } from "react";
import { useTranslation } from "react-i18next";
import { nextWithPrefix, useTypeAhead } from "@/components/useTypeAhead";
import { iconOf } from "@/graph/render/nodeIcons";
import { predecessorOf } from "../document/edits";
import { PALETTE } from "../document/palette";
import { useEditor } from "../editorContext";
import { DRAGGED } from "./EditorCanvas";

const LETTER = /^[\p{L}\p{N}]$/u;

/**
 * Node types to add: a click adds behind the selected node, dragging adds at a position. The palette is one tab stop.
 */
export function Palette() {
  const { t } = useTranslation();
  const { draft, node, canvas } = useEditor();
  const bar = useRef<HTMLDivElement>(null);
  const typed = useTypeAhead();
  const put = (type: string) => canvas.drawing().add({ type, after: predecessorOf(draft.shown, node?.id) });
  const find = (event: KeyboardEvent) => {
    if (!LETTER.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    const names = [...(bar.current?.querySelectorAll("button") ?? [])];
    const at = names.findIndex((one) => one.matches(":focus"));
    nextWithPrefix(names, at, typed.add(event.key.toLowerCase()), (one) => one.textContent.trim())?.focus();
    event.preventDefault();
  };
  return (
    <Toolbar.Root
      ref={bar}
      orientation="vertical"
      aria-label={t("editor.palette")}
      onKeyDown={find}
      className="flex w-max min-w-36 shrink-0 flex-col gap-1 overflow-auto border-r border-line bg-surface p-2 max-md:hidden"
    >
      {PALETTE.map((type) => {
        const Icon = iconOf(type);
        return (
          <Toolbar.Button
            key={type}
            title={t(`nodeAbout.${type}`)}
            draggable
            onDragStart={(event) => event.dataTransfer.setData(DRAGGED, type)}
            onClick={() => put(type)}
            className="flex h-8 shrink-0 items-center gap-2 rounded-md px-2 text-left text-ink-soft hover:bg-sunken hover:text-ink"
          >
            <Icon className="size-4 shrink-0" aria-hidden /> {t(`node.${type}`)}
          </Toolbar.Button>
        );
      })}
    </Toolbar.Root>
  );
}
