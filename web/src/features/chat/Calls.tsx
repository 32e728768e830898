import { LoaderCircle, Wrench } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Value } from "../execution/Value";
import type { Call } from "./parts";

/** Tool calls, each collapsed, with arguments and result. */
export function Calls({ calls }: { calls: readonly Call[] }) {
  const { t } = useTranslation();
  return (
    <ul className="space-y-1 empty:hidden">
      {calls.map((call) => (
        <li key={call.id}>
          <details className="rounded-md border border-line bg-surface">
            <summary className="flex min-h-8 cursor-pointer items-center gap-2 px-2.5 text-sm text-ink-soft">
              {call.isOpen ? (
                <LoaderCircle className="size-4 shrink-0 animate-spin text-running" aria-hidden />
              ) : (
                <Wrench className="size-4 shrink-0" aria-hidden />
              )}
              <span className="min-w-0 truncate font-mono text-xs">{call.tool}</span>
              {call.isOpen ? <span className="sr-only">{t("chat.calling")}</span> : null}
            </summary>
            <div className="space-y-2 border-t border-line p-2.5">
              <p className="text-xs text-ink-faint">{t("chat.given")}</p>
              <Value value={call.arguments} />
              <p className="text-xs text-ink-faint">{t("chat.came")}</p>
              <Value value={call.result} />
            </div>
          </details>
        </li>
      ))}
    </ul>
  );
}
