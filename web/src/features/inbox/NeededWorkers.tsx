/** The steps of an execution that wait for a worker, and what that worker must offer. */

import { Clock } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Execution } from "@/api/views";

export function NeededWorkers(props: { execution: Execution; className: string }) {
  const { t } = useTranslation();
  const needed = props.execution.waitingFor;
  if (needed.length === 0) return null;
  return (
    <div className={props.className} role="status">
      {needed.map((one) => (
        <p key={`${one.executionId ?? ""} ${one.step}`} className="flex items-center gap-2 text-sm">
          <Clock aria-hidden className="size-4 shrink-0 text-waiting" />
          {t(`gate.worker.${kindOf(one.needs)}`, {
            node: one.nodeId,
            name: one.needs.slice(one.needs.indexOf(":") + 1),
          })}
        </p>
      ))}
      <p className="text-sm text-ink-soft">{t("gate.worker.onward")}</p>
    </div>
  );
}

const KINDS = ["queue", "tool", "model", "secret"] as const;

function kindOf(needs: string) {
  return KINDS.find((kind) => needs.startsWith(`${kind}:`)) ?? "executor";
}
