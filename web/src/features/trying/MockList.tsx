/** All mocks and breakpoints, with buttons that remove them. */
import { CircleDot, Pin, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/IconButton";
import { useEditor } from "@/features/editor/editorContext";
import { useNodeName } from "@/graph/model/nodeNames";
import { tryoutOf, useTryout } from "./tryout";

export function MockList({ id }: { id: string }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  const { pick, draft, canvas } = useEditor();
  const { pins, breakpoints } = useTryout(id, (now) => now);
  const acts = tryoutOf(id).getState();
  const present = new Set(draft.shown.nodes.map((node) => node.id));
  const placed = [
    ...Object.keys(pins).map((node) => ({ node, icon: Pin, word: "Pin", drop: () => acts.unpin(node) })),
    ...breakpoints.map((node) => ({
      node,
      icon: CircleDot,
      word: "Stop",
      drop: () => acts.setBreakpoint(node, false),
    })),
  ];
  if (placed.length === 0) return null;
  const show = (node: string) => {
    pick({ kind: "node", id: node });
    canvas.reveal([node]);
  };
  return (
    <section>
      <h3 className="mb-1 font-medium">{t("try.placed")}</h3>
      <ul aria-label={t("try.placed")} className="divide-y divide-line rounded-md border border-line">
        {placed.map(({ node, icon: Icon, word, drop }) => (
          <li key={`${word} ${node}`} className="flex items-center gap-2 px-3 py-1">
            <span title={t(`try.is${word}`)}>
              <Icon className="size-4 shrink-0 text-ink-faint" aria-hidden />
              <span className="sr-only">{t(`try.is${word}`)}</span>
            </span>
            <button
              type="button"
              title={node}
              disabled={!present.has(node)}
              onClick={() => show(node)}
              className="min-h-6 min-w-0 flex-1 truncate text-left enabled:hover:underline"
            >
              <bdi>{nameOf(node)}</bdi>
              {present.has(node) ? null : <span className="text-ink-faint"> {t("try.gone")}</span>}
            </button>
            <IconButton icon={X} name={t(`try.un${word}Named`, { node: nameOf(node) })} size="small" onClick={drop} />
          </li>
        ))}
      </ul>
    </section>
  );
}
