/** Details that help to find the cause of a failure: the position in the author's code, and the response of a model or
 * a service. */

import { useTranslation } from "react-i18next";
import type { Failure } from "@/api/views";

const PARTS = ["where", "expression", "answer", "body", "data", "output", "stderr", "traceback"] as const;

export function Evidence({ failure }: { failure: Failure }) {
  const { t } = useTranslation();
  const details = failure.details;
  if (!details || typeof details !== "object" || Array.isArray(details)) return null;
  const parts = PARTS.flatMap((name) => {
    const text = details[name];
    return typeof text === "string" && text ? [{ name, said: text }] : [];
  });
  if (parts.length === 0) return null;
  return (
    <details className="mt-2 text-xs">
      <summary className="min-h-6 cursor-pointer text-ink-soft">{t("execution.evidence.title")}</summary>
      <dl className="mt-1 space-y-1">
        {parts.map(({ name, said: text }) => (
          <div key={name}>
            <dt className="text-ink-faint">{t(`execution.evidence.${name}`)}</dt>
            <dd>
              <pre className="max-h-64 overflow-auto whitespace-pre-wrap break-words font-mono">{text}</pre>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
