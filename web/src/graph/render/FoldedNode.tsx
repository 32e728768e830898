/** A folded region: one box with a node count and the combined status of its nodes. */

import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { ChevronRight } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import { type Look, StatusIcon } from "@/components/Status";
import { BOX } from "@/graph/layout/geometry";
import type { Box } from "@/graph/model/picture";
import { useFolding } from "./folding";
import { iconOf } from "./nodeIcons";
import { useLooks } from "./overlay";

export type FoldedBox = Node<{ box: Box; group: string }, "folded">;

export const FoldedNode = memo(function FoldedNode({ data, selected }: NodeProps<FoldedBox>) {
  const { t } = useTranslation();
  const { toggle } = useFolding();
  const { box, group } = data;
  const look = useLooks(box.foldedNodes ?? []) as Look | null;
  const Icon = iconOf(box.type);
  return (
    <div
      style={{ width: BOX.width, height: BOX.height }}
      className={`flex items-center gap-2 rounded-lg border-[1.5px] border-dashed border-line-strong bg-accent-soft px-2 shadow-[4px_4px_0_-1px_var(--surface),4px_4px_0_0_var(--line-strong)] ${selected ? "outline-2 outline-offset-2 outline-accent" : ""}`}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} className="invisible" />
      <button
        type="button"
        onClick={() => toggle(group)}
        aria-expanded={false}
        aria-label={t("graph.unfold", { name: box.name })}
        title={t("graph.unfold", { name: box.name })}
        className="nopan nodrag flex size-7 shrink-0 items-center justify-center rounded-md text-ink-soft hover:bg-surface hover:text-ink"
      >
        <ChevronRight className="size-4" aria-hidden />
      </button>
      <Icon className="size-4 shrink-0 text-ink-soft" aria-hidden />
      <p className="min-w-0 flex-1 truncate">{t("graph.inside", { count: box.foldedNodes?.length ?? 0 })}</p>
      {look ? (
        <>
          <StatusIcon status={look} />
          <span className="sr-only">{t(`status.${look}`)}</span>
        </>
      ) : null}
      <Handle type="source" position={Position.Right} isConnectable={false} className="invisible" />
    </div>
  );
});
