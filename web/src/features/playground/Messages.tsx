import { useTranslation } from "react-i18next";
import type { JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { brief } from "@/values/changes";

/** The earlier messages of a conversation that was opened here. */
export function Messages(props: { messages: readonly JsonObject[]; onRemove: () => void }) {
  const { t } = useTranslation();
  if (props.messages.length === 0) return null;
  return (
    <details className="rounded-md border border-line bg-surface">
      <summary className="min-h-8 cursor-pointer px-2.5 py-1.5">
        {t("playground.messages", { count: props.messages.length })}
      </summary>
      <ol className="max-h-64 space-y-1.5 overflow-auto px-2.5 pb-2">
        {props.messages.map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the messages do not change
          <li key={at} className="wrap-anywhere">
            <span className="text-xs font-semibold text-ink-soft">
              {t(`call.role.${String(one.role)}`, String(one.role))}
            </span>{" "}
            {typeof one.content === "string" ? one.content : brief(one.content ?? null)}
          </li>
        ))}
      </ol>
      <div className="px-2.5 pb-2.5">
        <Button onClick={props.onRemove}>{t("playground.messagesRemove")}</Button>
      </div>
    </details>
  );
}
