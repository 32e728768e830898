/** The workflow as a tree, for editing with the keyboard. */
import { Plus } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { pictureOf } from "@/graph/model/picture";
import { Outline } from "@/graph/render/Outline";
import type { Row } from "@/graph/render/outlineRows";
import { selectionOf } from "../canvas/selection";
import { type NewNode, removeElements } from "../document/edits";
import { useDrawnDefinition, useEditor } from "../editorContext";

const QuickAdd = lazy(() => import("../canvas/QuickAdd"));
const ConnectDialog = lazy(() => import("../canvas/ConnectDialog"));

export default function OutlinePanel() {
  const { t, i18n } = useTranslation();
  const { draft, canvas, picked, select, pick } = useEditor();
  const drawn = useDrawnDefinition();
  const definition = draft.shown;
  const picture = useMemo(() => pictureOf(drawn, i18n.language, t), [drawn, i18n.language, t]);
  const [adding, add] = useState<Omit<NewNode, "type"> | null>(null);
  const [connecting, connect] = useState<Row | null>(null);
  const tree = useRef<HTMLDivElement>(null);
  const [hasFocus] = useState(() => canvas.focusOutline);
  // Not during rendering, because React may discard a render and start again.
  useEffect(() => {
    canvas.focusOutline = false;
  }, [canvas]);

  const focusTree = () => tree.current?.querySelector<HTMLElement>("[role=tree]")?.focus();
  const move = (row: Row) => {
    if (row.arrow?.isImplied) return;
    select(selectionOf(row));
    canvas.reveal([row.arrow?.source ?? row.id]);
  };
  const remove = (row: Row) => {
    if (row.arrow?.isImplied) return;
    draft.act(...removeElements(definition, selectionOf(row)));
    select(selectionOf(row.parent?.startsWith("node ") ? { kind: "node", id: row.parent.slice(5) } : null));
  };
  const put = (type: string) => {
    add(null);
    canvas.drawing().add(
      { ...adding, type },
      {
        onAdded: (id) => select(selectionOf({ kind: "node", id })),
        focus: focusTree,
      },
    );
  };
  return (
    <div className="flex h-full flex-col gap-2">
      <div className="flex items-center gap-2">
        <p className="min-w-0 flex-1 text-xs text-ink-soft">{t("outline.keys")}</p>
        <Button onClick={() => add(picked?.kind === "node" ? { after: picked.id } : {})}>
          <Plus className="size-4" aria-hidden /> {t("outline.add")}
        </Button>
      </div>
      {picture.boxes.length === 0 ? <p className="text-ink-soft">{t("outline.empty")}</p> : null}
      <div ref={tree} className="min-h-0 flex-1">
        <Outline
          picture={picture}
          picked={picked}
          hasFocus={hasFocus}
          onMove={move}
          onPick={(row) => row.arrow?.isImplied || pick({ kind: row.kind, id: row.id })}
          verbs={{
            remove,
            connect: (row) => row.arrow?.isImplied || connect(row),
            add: (row) => add(row.kind === "edge" && !row.arrow?.isImplied ? { on: row.id } : { after: row.id }),
          }}
        />
      </div>
      {adding ? (
        <Suspense>
          <QuickAdd onAdd={put} onClose={() => add(null)} />
        </Suspense>
      ) : null}
      {connecting ? (
        <Suspense>
          <ConnectDialog
            from={{ kind: connecting.kind, id: connecting.id }}
            onClose={() => connect(null)}
            focus={focusTree}
          />
        </Suspense>
      ) : null}
    </div>
  );
}
