/** What helps to find the cause of a failure: where the author's code failed, and what a model or a service answered. */

import { useTranslation } from "react-i18next";
import type { Failure } from "@/api/views";

const PARTS = ["where", "expression", "answer", "body", "data", "output", "stderr", "traceback"] as const;

export function Evidence({ failure }: { failure: Failure }) {
  const { t } = useTranslation();
  const details = failure.details;
  if (!details || typeof details !== "object" || Array.isArray(details)) return null;
  const found = PARTS.flatMap((name) => {
    const said = details[name];
    return typeof said === "string" && said ? [{ name, said }] : [];
  });
  if (found.length === 0) return null;
  return (
    <details className="mt-2 text-xs">
      <summary className="min-h-6 cursor-pointer text-ink-soft">{t("execution.evidence.title")}</summary>
      <dl className="mt-1 space-y-1">
        {found.map(({ name, said }) => (
          <div key={name}>
            <dt className="text-ink-faint">{t(`execution.evidence.${name}`)}</dt>
            <dd>
              <pre className="max-h-64 overflow-auto whitespace-pre-wrap break-words font-mono">{said}</pre>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
