import { useTranslation } from "react-i18next";
import { ErrorMessage } from "@/components/StatusMessage";

const SETTINGS = `# pointsman.toml
[models]
design = "openai:gpt-5"`;
const START = "export OPENAI_API_KEY=…\npointsman serve";

/** The error of a design. If no model is configured for designing, explain how to configure one. */
export function DesignFailed({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const { t } = useTranslation();
  const isMissing = error instanceof Error && "code" in error && error.code === "no-designer";
  if (!isMissing) return <ErrorMessage error={error} {...(onRetry ? { onRetry: onRetry } : {})} />;
  return (
    <section className="rounded-md border border-waiting/50 bg-waiting-soft p-3" role="alert">
      <p className="font-medium">{t("assistant.noModel")}</p>
      <p className="mt-1 text-ink-soft">{t("assistant.noModelHint")}</p>
      <pre className="mt-2 overflow-auto rounded bg-surface p-2 font-mono text-xs">{SETTINGS}</pre>
      <p className="mt-2 text-ink-soft">{t("assistant.noModelStart")}</p>
      <pre className="mt-2 overflow-auto rounded bg-surface p-2 font-mono text-xs">{START}</pre>
      {onRetry ? (
        <button type="button" onClick={onRetry} className="mt-2 min-h-6 underline">
          {t("loading.retry")}
        </button>
      ) : null}
    </section>
  );
}
