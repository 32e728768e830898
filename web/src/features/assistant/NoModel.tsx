import { useTranslation } from "react-i18next";
import { ConnectModel } from "@/components/ConnectModel";
import { ErrorMessage } from "@/components/StatusMessage";

/** The error of a design. If no model is configured for designing, lead to where one is connected. */
export function DesignFailed({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { t } = useTranslation();
  const isMissing = error instanceof Error && "code" in error && error.code === "design-model-missing";
  if (!isMissing) return <ErrorMessage error={error} {...(onRetry ? { onRetry: onRetry } : {})} />;
  return (
    <section className="rounded-md border border-waiting/50 bg-waiting-soft p-3" role="alert">
      <p className="font-medium">{t("assistant.noModel")}</p>
      <p className="mt-1 text-ink-soft">{t("assistant.noModelHint")}</p>
      <p className="mt-1 flex gap-4">
        <ConnectModel />
        {onRetry ? (
          <button type="button" onClick={onRetry} className="min-h-6 underline">
            {t("loading.retry")}
          </button>
        ) : null}
      </p>
    </section>
  );
}
