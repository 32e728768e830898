import { useTranslation } from "react-i18next";
import { iconOf } from "@/graph/looks";
import { DRAGGED } from "./EditorCanvas";
import { added, openEnd } from "./edits";
import { PALETTE } from "./language";
import { useWork } from "./work";

/** What can be added: by a click after what is picked, or by dragging it to its place. */
export function Palette() {
  const { t } = useTranslation();
  const { draft, node, pick, stage } = useWork();
  const put = (type: string) => {
    const { id, changes } = added(draft.shown, stage.places(), { type, after: node?.id ?? openEnd(draft.shown) });
    draft.act(...changes);
    pick({ kind: "node", id });
    stage.reveal([id]);
  };
  return (
    <nav
      aria-label={t("editor.palette")}
      className="flex shrink-0 gap-1 overflow-auto border-line bg-surface p-2 max-md:hidden md:w-max md:min-w-36 md:flex-col md:border-r"
    >
      {PALETTE.map((type) => {
        const Icon = iconOf(type);
        return (
          <button
            key={type}
            type="button"
            title={t(`nodeAbout.${type}`)}
            draggable
            onDragStart={(event) => event.dataTransfer.setData(DRAGGED, type)}
            onClick={() => put(type)}
            className="flex h-8 shrink-0 items-center gap-2 rounded-md px-2 text-left text-ink-soft hover:bg-sunken hover:text-ink"
          >
            <Icon className="size-4 shrink-0" aria-hidden /> {t(`node.${type}`)}
          </button>
        );
      })}
    </nav>
  );
}
