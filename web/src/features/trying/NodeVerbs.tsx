/** Partial-run actions of a node, in one row above its fields. */
import { CircleDot, Pin, PinOff, SkipForward } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode } from "@/api/views";
import { Button } from "@/components/Button";
import { useNodeName } from "@/graph/model/nodeNames";
import { useTrialEntries } from "./useTrialEntries";

const ICONS = { runTo: SkipForward, pin: Pin, unpin: PinOff, stop: CircleDot, unstop: CircleDot };

export function NodeVerbs({ node }: { node: DefinitionNode }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  const entries = useTrialEntries(node);
  if (entries.length === 0) return null;
  return (
    <div role="toolbar" aria-label={t("try.node", { node: nameOf(node.id) })} className="flex flex-wrap gap-2">
      {entries.map(({ name, act, isOff }) => {
        const Icon = ICONS[name as keyof typeof ICONS];
        return (
          <Button key={name} onClick={act} disabled={isOff ?? false}>
            <Icon className={`size-4 ${name === "unstop" ? "text-failed" : ""}`} aria-hidden /> {t(`canvas.${name}`)}
          </Button>
        );
      })}
    </div>
  );
}
