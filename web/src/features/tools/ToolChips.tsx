import { useTranslation } from "react-i18next";
import { Chip } from "@/components/Chip";
import type { Tool } from "./tools";

/** The properties of a tool to consider before an agent may use it. */
export function ToolChips({ tool }: { tool: Tool }) {
  const { t } = useTranslation();
  const chips = [
    tool.enabled ? null : (
      <Chip key="off" look="bad">
        {t("tools.off")}
      </Chip>
    ),
    tool.requiresApproval ? (
      <Chip key="approval" look="careful">
        {t("tools.approval")}
      </Chip>
    ) : null,
    tool.side === "client" ? <Chip key="client">{t("tools.client")}</Chip> : null,
    tool.idempotent ? null : (
      <Chip key="once" title={t("tools.notIdempotent")}>
        {t("tools.once")}
      </Chip>
    ),
  ].filter(Boolean);
  return chips.length > 0 ? <span className="flex flex-wrap gap-1">{chips}</span> : null;
}
