/** Frame around a region; its title folds the region. */
import type { Node, NodeProps } from "@xyflow/react";
import { ChevronDown } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import type { Region } from "@/graph/model/regions";
import { useFolding } from "./folding";
import { iconOf } from "./nodeIcons";

export type FrameBox = Node<{ group: Region; name: string }, "frame">;

export const FrameNode = memo(function FrameNode({ data }: NodeProps<FrameBox>) {
  const { t } = useTranslation();
  const { toggle } = useFolding();
  const { group, name } = data;
  const Icon = iconOf(group.kind);
  const inside = t("graph.inside", { count: group.count ?? group.members.length });
  return (
    <div className="size-full rounded-xl border border-dashed border-line-strong bg-[color-mix(in_srgb,var(--accent-soft)_38%,transparent)]">
      <button
        type="button"
        onClick={() => toggle(group.id)}
        aria-expanded
        aria-label={`${inside}: ${t("graph.fold", { name })}`}
        title={t("graph.fold", { name })}
        className="nopan nodrag pointer-events-auto absolute top-1 left-1.5 flex h-6 items-center gap-1 rounded-md px-1.5 text-xs text-ink-soft hover:bg-surface hover:text-ink"
      >
        <ChevronDown className="size-3.5" aria-hidden />
        <Icon className="size-3.5" aria-hidden />
        {inside}
      </button>
    </div>
  );
});
